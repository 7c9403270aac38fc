"""Paths in a config, and a copy of the config without folders that may leave the machine."""

from __future__ import annotations

from typing import Any

from core.config import RunConfig, parse_config
from core.config.run import is_path, named_models, translation_models, without_folders

THERE, BACK = "/home/somebody/models/there", "C:\\models\\back"


def of_views(*, back_translation: float | None = None) -> RunConfig:
    """Return a run of two phases, the first with two back-translated views."""
    views = [{"view": "back_translation", "forward": THERE, "backward": BACK}, {"view": "back_translation"}]
    phases = [{"steps": 2, "objective": {"terms": [{"loss": "supcon", "views": views}]}}, {"steps": 3}]
    task: dict[str, Any] = {"id": "file", "path": "/home/somebody/films.csv", "test_path": "D:\\data\\test.csv"}
    task |= {"translators": ["hub/there", "./back"], "back_translation": back_translation}
    return parse_config({"task": task, "encoder": {"id": "~/models/bert"}, "phases": phases})


def test_a_path_is_told_from_a_name_of_the_hub() -> None:
    names = ["all-MiniLM-L6-v2", "bert-base-uncased", "Helsinki-NLP/opus-mt-en-de"]
    paths = [
        "/models/bert",
        "~/bert",
        "./bert",
        ".bert",
        "hub/../bert",
        "models/english/bert",
        "models\\bert",
        "C:bert",
    ]
    assert [name for name in (*names, *paths) if is_path(name)] == paths


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


def test_a_run_loads_the_models_that_it_translates_with_and_names_all() -> None:
    of_the_views = [THERE, BACK, "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"]
    assert translation_models(of_views()) == of_the_views
    assert translation_models(of_views(back_translation=0.7)) == ["hub/there", "./back", *of_the_views]
    assert translation_models(parse_config({})) == []
    assert named_models(of_views())[:3] == ["~/models/bert", "hub/there", "./back"]
