"""Change several settings of a draft at once. Format settings as text and parse them again."""

from __future__ import annotations

from typing import Any

import pytest

from core.cli.main import draft_from
from core.config import RunConfig, parse_config
from core.config.edit import DEFAULT_PRESET, apply_settings, from_settings, settings_text
from core.config.presets import PRESETS
from core.errors import ConfigError
from tests.cases import each


def test_fields_are_set_with_and_without_their_phase() -> None:
    found = apply_settings(RunConfig(), {"batch_size": 8, "phases.0.steps": 5, "task.train_size": 20, "seed": 3})
    assert (found.phases[0].batch_size, found.phases[0].steps) == (8, 5)
    assert (found.task.train_size, found.seed) == (20, 3)


@each("order", [("preset", "temperature", "batch_size"), ("batch_size", "temperature", "preset")])
def test_a_preset_comes_first_whatever_the_order(order: tuple[str, ...]) -> None:
    wanted: dict[str, Any] = {"preset": "dscl", "temperature": 0.2, "batch_size": 4}
    phase = apply_settings(RunConfig(), {name: wanted[name] for name in order}).phases[0]
    assert {term.loss for term in phase.objective.terms} == {"dscl", "cross_entropy"}
    assert phase.objective.temperature == 0.2
    assert phase.batch_size == 4


def test_a_preset_of_two_phases_shares_the_steps_and_one_of_one_phase_has_them_all() -> None:
    base = apply_settings(RunConfig(), {"steps": 30, "batch_size": 8})
    two = apply_settings(base, {"preset": "simcse"})
    assert [phase.steps for phase in two.phases] == [15, 15]
    assert [phase.batch_size for phase in two.phases] == [8, 8]
    assert apply_settings(two, {"preset": "ce"}).phases[0].steps == 30


def test_rows_that_may_change_lose_their_hash() -> None:
    base = parse_config({"task": {"content_hash": "0" * 64}})
    changes = ({"batch_size": 4}, {"seed": 1}, {"task.label_noise": 0.2})
    assert [apply_settings(base, change).task.content_hash for change in changes] == ["0" * 64, None, None]


@each(
    ("settings", "sentence"),
    [
        ({"preset": "nonsense"}, "preset = 'nonsense' cannot be used: choose one of"),
        ({"preset": 3}, "preset = 3 cannot be used"),
        ({"preset": "ce", "lambda": 0.5}, "lambda = 0.5 cannot be used: this objective has no λ"),
        ({"lambda": "half"}, "lambda = 'half' cannot be used: give a number"),
        ({"lambda": True}, "lambda = True cannot be used: give a number"),
        ({"lambda": 2}, "lambda = 2 cannot be used: give a number from 0 to 1"),
        ({"preset": "ce", "temperature": 0.5}, "temperature = 0.5 cannot be used: this objective has no contrastive"),
        ({"temperature": 0}, "temperature = 0"),
        ({"objective.terms.5.k": 3}, "objective.terms has 2"),
        ({"no.such.field": 3}, "no = "),
        ({"": 3}, "give FIELD=VALUE"),
    ],
)
def test_what_cannot_be_set_is_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        apply_settings(RunConfig(), settings)
    assert sentence in str(error.value)


def test_terms_and_lambda_have_a_path() -> None:
    found = apply_settings(RunConfig(), {"objective.terms.supcon.temperature": 0.2, "phases.0.objective.lambda": 0.4})
    assert found == apply_settings(RunConfig(), {"objective.terms.0.temperature": 0.2, "lambda": 0.4})
    with pytest.raises(ConfigError, match="there is one phase"):
        apply_settings(RunConfig(), {"phases.1.objective.lambda": 0.4})


def test_of_two_phases_one_has_to_be_named_and_its_epochs_take_the_place_of_its_steps() -> None:
    two = apply_settings(RunConfig(), {"preset": "simcse", "steps": 12})
    found = apply_settings(two, {"phases.1.epochs": 2.0})
    assert [(phase.steps, phase.epochs) for phase in found.phases] == [(6, None), (None, 2.0)]
    with pytest.raises(ConfigError, match="there are two phases"):
        apply_settings(two, {"steps": 4})
    assert apply_settings(two, {"phases.1.steps": 4}).steps == 10


def drafted(*settings: str, **options: Any) -> RunConfig:
    return draft_from({"settings": settings, **options})


@each("name", PRESETS)
def test_a_preset_is_named_and_comes_back(name: str) -> None:
    draft = drafted(preset=name)
    assert settings_text(draft) == ([] if name == DEFAULT_PRESET else [f"preset={name}"])
    assert from_settings(settings_text(draft)) == draft


@each(
    "settings",
    [
        ["seed=3", "precision=float32", "encoder.pooling=cls"],
        ["phases.0.objective.terms.0.temperature=0.1", "phases.0.steps=60"],
        ['name="true"', "task.train_size=20"],
        ["encoder.dropout=0.25"],
        ['name=a=b & "c" # ü', "probe.size=40"],
        ["phases.0.trainable.part=lora", "phases.0.optimiser.learning_rate=0.0003"],
        [
            "phases.0.objective.combine=additive",
            'phases.0.objective.terms=[{"loss":"simcse","views":[{"view":"dropout"}]},{"loss":"cross_entropy"}]',
        ],
    ],
)
@each("name", [DEFAULT_PRESET, "simcse", "dscl"])
def test_settings_come_back(name: str, settings: list[str]) -> None:
    draft = drafted(*settings, preset=name)
    texts = settings_text(draft)
    assert from_settings(texts) == draft
    assert len(texts) <= len(settings) + 4


def test_neither_the_task_nor_a_file_is_said_or_taken() -> None:
    task = {"id": "file", "path": "/etc/passwd", "name": "x", "train_size": 20}
    assert settings_text(parse_config({"task": task})) == ["task.train_size=20"]
    for text in ("task.path=/etc/passwd", 'task={"id":"file","path":"/etc/passwd"}', " task.id=file"):
        with pytest.raises(ConfigError, match="leave it out"):
            from_settings([text])


@each("text", ["", "seed", "seed=", "seed=-1", "nothing=1", "preset=nope", "phases.7.steps=1", "phases.0.objective=1"])
def test_what_cannot_be_used_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError):
        from_settings([text])
