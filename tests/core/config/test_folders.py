"""Paths in a config, and a copy of the config without folders that may leave the machine."""

from __future__ import annotations

from typing import Any

from core.config import RunConfig, parse_config
from core.config.run import is_path, named_models, translation_models, without_folders
from tests.cases import each

THERE, BACK = "/home/somebody/models/there", "C:\\models\\back"


def of_views(*, back_translation: float | None = None) -> RunConfig:
    """Return a run of two phases, the first with two back-translated views."""
    views = [{"view": "back_translation", "forward": THERE, "backward": BACK}, {"view": "back_translation"}]
    terms = [{"loss": "supcon", "views": views}]
    return parse_config(
        {
            "task": {
                "id": "file",
                "path": "/home/somebody/films.csv",
                "test_path": "D:\\data\\test.csv",
                "translators": ["hub/there", "./back"],
                "back_translation": back_translation,
            },
            "encoder": {"id": "~/models/bert"},
            "phases": [{"steps": 2, "objective": {"terms": terms}}, {"steps": 3}],
        }
    )


@each(
    ("name", "path"),
    [
        ("all-MiniLM-L6-v2", False),
        ("bert-base-uncased", False),
        ("Helsinki-NLP/opus-mt-en-de", False),
        ("/models/bert", True),
        ("~/bert", True),
        ("./bert", True),
        (".bert", True),
        ("hub/../bert", True),
        ("models/english/bert", True),
        ("models\\bert", True),
        ("C:bert", True),
    ],
)
def test_a_path_is_told_from_a_name_of_the_hub(name: str, path: bool) -> None:
    assert is_path(name) is path


def test_everything_that_is_named_leaves_by_its_name_alone() -> None:
    config = without_folders(of_views())
    assert (config.task.path, config.task.test_path) == ("films.csv", "test.csv")
    assert config.task.translators == ("hub/there", "back")
    assert config.encoder.id == "bert"
    first, second = config.phases[0].objective.terms[0].views
    assert (first.parameters["forward"], first.parameters["backward"]) == ("there", "back")
    assert second == of_views().phases[0].objective.terms[0].views[1]
    assert not any(place in config.to_json() for place in ("somebody", "models", "data", "/home", ":\\"))


def test_the_rest_stays() -> None:
    changed = {"task", "encoder", "phases"}
    before, after = (config.model_dump(exclude=changed) for config in (of_views(), without_folders(of_views())))
    assert before == after
    assert without_folders(of_views()).phases[1] == of_views().phases[1]
    assert parse_config(without_folders(of_views()).model_dump(mode="json")) == without_folders(of_views())


@each(
    ("given", "models"),
    [
        ({}, [THERE, BACK, "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"]),
        (
            {"back_translation": 0.7},
            ["hub/there", "./back", THERE, BACK, "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"],
        ),
    ],
)
def test_a_run_loads_the_models_that_it_translates_with(given: dict[str, Any], models: list[str]) -> None:
    assert translation_models(of_views(**given)) == models


def test_models_that_are_not_loaded_are_named_too() -> None:
    assert translation_models(parse_config({})) == []
    assert named_models(of_views())[:3] == ["~/models/bert", "hub/there", "./back"]
