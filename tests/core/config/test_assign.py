"""Settings as text: what a link says, and what is made of it again."""

from __future__ import annotations

from typing import Any

import pytest

from core.cli.main import draft_from
from core.config import RunConfig, parse_config
from core.config.edit import DEFAULT_PRESET, from_settings, settings_text
from core.config.presets import PRESETS
from core.errors import ConfigError
from tests.cases import each


def changed(*settings: str, **options: Any) -> RunConfig:
    return draft_from({"settings": settings, **options})


@each("name", PRESETS)
def test_a_preset_is_named_and_comes_back(name: str) -> None:
    draft = changed(preset=name)
    assert settings_text(draft) == ([] if name == DEFAULT_PRESET else [f"preset={name}"])
    assert from_settings(settings_text(draft)) == draft


@each(
    "settings",
    [
        ["seed=3", "precision=float32", "encoder.pooling=cls"],
        ["phases.0.objective.terms.0.temperature=0.1", "phases.0.steps=60"],
        ['name="true"', "task.train_size=20"],
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
    draft = changed(*settings, preset=name)
    texts = settings_text(draft)
    assert from_settings(texts) == draft
    assert len(texts) <= len(settings) + 4


def test_only_what_differs_is_said() -> None:
    assert settings_text(RunConfig()) == []
    assert settings_text(changed("seed=3", weight=0.5)) == [
        "phases.0.objective.terms.0.weight=0.5",
        "phases.0.objective.terms.1.weight=0.5",
        "seed=3",
    ]


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
