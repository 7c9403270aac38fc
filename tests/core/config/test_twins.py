"""A twin is a copy of a run with one setting changed."""

from __future__ import annotations

from typing import Any

import pytest

from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.edit import NAME_LENGTH, twin, twin_name
from core.errors import ConfigError
from tests.cases import each
from tests.core.config.made import CE, SCL, turned, views
from tests.core.config.test_compare import HOSTILE, diff

TAU = "phases.0.objective.terms.supcon.temperature"
LAMBDA = "phases.0.objective.lambda"
RATE = "phases.0.optimiser.learning_rate"


@pytest.fixture(scope="module")
def original() -> RunConfig:
    phase = {"steps": 40, "optimiser": {"learning_rate": 5e-5}}
    draft = {"name": "Run 7", "seed": 3, "phases": [phase], "task": {"train_size": 100}}
    return prepare(parse_config(draft), gpu=False)[0]


@each(
    ("path", "value", "label", "values"),
    [
        (TAU, 0.1, "Temperature τ of SCL", ("0.3", "0.1")),
        (LAMBDA, 0.5, "Weight λ", ("0.9", "0.5")),
        (RATE, 2e-4, "Learning rate", ("5e-05", "2e-04")),
        ("phases.0.trainable.part", "classifier", "Trained weights", ("All weights", "Classifier only")),
        ("task.train_size", 40, "Training rows", ("100", "40")),
        ("task.train_size", None, "Training rows", ("100", "All")),
        ("task.validation_size", 40, "Validation rows", ("120", "40")),
        ("task.sampler", "class_balanced", "Batches", ("Random", "Class-balanced")),
        ("encoder.pooling", "cls", "Pooling", ("Mean of tokens", "[CLS]")),
        ("seed", 4, "Seed", ("3", "4")),
    ],
)
def test_one_setting_changes_and_the_twin_can_run(
    original: RunConfig, path: str, value: Any, label: str, values: tuple[str, str]
) -> None:
    ready, data = prepare(twin(original, path, value), gpu=False)
    assert diff(original, ready) == {label: values}
    assert ready.probe.frame_steps == original.probe.frame_steps
    assert ready.seed == (4 if path == "seed" else 3)
    assert ready.task.validation_size == (40 if path == "task.validation_size" else original.task.validation_size)
    assert data.content_hash == ready.task.content_hash


def test_the_rows_stay_where_they_are_not_what_changes(original: RunConfig) -> None:
    hashes = {
        path: twin(original, path, value).task.content_hash
        for path, value in ((TAU, 0.1), ("task.sampler", "class_balanced"), ("task.train_size", 40), ("seed", 1))
    }
    kept = original.task.content_hash
    assert kept is not None
    assert list(hashes.values()) == [kept, kept, None, None]


def test_the_same_validation_rows_are_on_both_maps(original: RunConfig) -> None:
    one, other = (prepare(c, gpu=False)[1] for c in (original, twin(original, "task.train_size", 40)))
    assert one.validation.texts == other.validation.texts
    assert set(other.train.texts) < set(one.train.texts)


def test_training_rows_on_the_map_are_no_more_than_there_are(original: RunConfig) -> None:
    few = twin(original, "task.train_size", 16)
    assert few.probe.train_size == 16
    assert twin(original, "task.train_size", 80).probe.train_size == original.probe.train_size
    assert twin(original, "task.train_size", None).probe.train_size == original.probe.train_size


def test_snapshots_are_chosen_anew_where_other_weights_learn(original: RunConfig) -> None:
    assert original.checkpoint.snapshot_steps is not None
    assert twin(original, RATE, 1e-4).checkpoint == original.checkpoint
    assert twin(original, "phases.0.trainable.part", "lora").checkpoint.snapshot_steps is None


def test_the_original_is_left_alone_and_named_by_itself(original: RunConfig) -> None:
    before = original.to_json()
    assert twin(original, TAU, 0.1).name == ""
    assert twin(original, TAU, 0.1, name="Cold").name == "Cold"
    assert original.to_json() == before


TWO = parse_config({"phases": [{"steps": 10}, {"steps": 5, "objective": {"terms": [CE]}}]})


def test_each_of_two_phases_has_its_own() -> None:
    changed = twin(TWO, "phases.1.optimiser.learning_rate", 1e-4)
    assert diff(TWO, changed) == {"Phase 2: Learning rate": ("The default", "1e-04")}
    assert diff(TWO, twin(TWO, LAMBDA, 0.5)) == {"Phase 1: Weight λ": ("0.9", "0.5")}


def test_a_view_by_its_key() -> None:
    eda = parse_config({"phases": [{"objective": {"terms": [SCL | {"views": views("eda")}]}}]})
    changed = twin(eda, "phases.0.objective.terms.supcon.views.eda.rate", 0.4)
    assert diff(eda, changed) == {"Rate r of easy data augmentation for SCL": ("0.1", "0.4")}


OBJECTIVE = "phases.0.objective"
TURNED = turned((2, "learning_rate", 0.5), (3, "temperature", 0.1))
TWO_TERMS = turned(
    *((2, f"{key}.temperature", 0.1) for key in ("supcon", "supcon_2")),
    phases=[{"objective": {"terms": [SCL, SCL], "combine": "additive"}}],
)


@each(
    ("config", "path", "value", "left"),
    [
        (TURNED, TAU, 0.2, ["learning_rate"]),
        (TURNED, LAMBDA, 0.2, ["learning_rate", "temperature"]),
        (TURNED, "phases.0.batch_size", 8, ["learning_rate", "temperature"]),
        (TURNED, OBJECTIVE, "ce", ["learning_rate"]),
        (TWO_TERMS, f"{OBJECTIVE}.terms.supcon_2.temperature", 0.5, ["supcon.temperature"]),
    ],
)
def test_turns_that_would_undo_the_change_go(config: RunConfig, path: str, value: Any, left: list[str]) -> None:
    assert [turn.name for turn in twin(config, path, value).knob_turns] == left


@each(
    ("path", "value", "message"),
    [
        (TAU, 0.0, "temperature = 0.0"),
        (LAMBDA, 2, "lambda = 2"),
        ("phases.0.objective.terms.supcon.weight", 0.5, "sum to 0.6"),
        ("phases.0.objective.terms.dscl.temperature", 0.5, "terms has 2; give a number from 0 to 1"),
        ("phases.3.batch_size", 8, "phases has 1; give 0"),
        ("nothing.at.all", 8, "nothing = .*nothing is not a field"),
        (OBJECTIVE, "simcse", "two phases"),
        (OBJECTIVE, "nonsense", "choose one of"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(original: RunConfig, path: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        twin(original, path, value)
    assert str(refused.value).endswith(".")


class TestName:
    @each(
        ("path", "value", "name"),
        [
            (TAU, 0.1, "Run 7, τ 0.1 instead of 0.3"),
            (LAMBDA, 0.5, "Run 7, λ 0.5 instead of 0.9"),
            (RATE, 2e-4, "Run 7, learning rate 2e-04 instead of 5e-05"),
            ("task.train_size", None, "Run 7, training rows all instead of 100"),
            ("phases.0.objective", "ce", "Run 7, CE instead of CE + SCL"),
            ("phases.0.trainable.part", "lora", "Run 7, trained weights LoRA instead of all weights"),
            (TAU, 0.3, "Run 7"),
        ],
    )
    def test_it_says_what_changed(self, original: RunConfig, path: str, value: Any, name: str) -> None:
        assert twin_name("Run 7", original, twin(original, path, value)) == name

    @each(
        ("config", "path", "value", "name"),
        [
            (TURNED, TAU, 0.5, "R, τ 0.5 instead of 0.3"),  # without the turns that both make
            (TWO_TERMS, TAU, 0.1, "R, τ of SCL 0.1 instead of 0.3"),  # two settings have the symbol
            (TWO, "phases.1.batch_size", 8, "R, phase 2: batch size 8 instead of 16"),
        ],
    )
    def test_it_names_the_owner_or_the_phase_only_where_another_has_the_setting(
        self, config: RunConfig, path: str, value: Any, name: str
    ) -> None:
        assert twin_name("R", config, twin(config, path, value)) == name

    @each("title", ["x" * 80, f"{HOSTILE} " * 5, "word " * 40, "\n a\tb "])
    @each(("path", "value"), [(TAU, 0.1), ("encoder.id", "y" * 300)])
    def test_it_always_fits_and_the_change_is_read(
        self, original: RunConfig, title: str, path: str, value: Any
    ) -> None:
        changed = twin(original, path, value)
        name = twin_name(title, original, changed)
        assert len(name) <= NAME_LENGTH
        assert " instead of " in name
        assert "\n" not in name
        assert twin(original, path, value, name=name).name == name
