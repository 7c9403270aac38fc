"""Files and folders that a config names. Only their names leave the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PureWindowsPath

from core.config.run import PhaseConfig, RunConfig
from core.config.term import TermConfig, ViewConfig


def is_path(name: str) -> bool:
    """Return whether the name of a model is a path on disk rather than a name on the Hub."""
    return name.startswith(("/", "~", ".")) or any(sign in name for sign in ("\\", ":", "..")) or name.count("/") > 1


def named_models(config: RunConfig) -> list[str]:
    """Return the encoder and all translation models that a config names, even those that the run does not load."""
    return [config.encoder.id, *config.task.translators, *(model for _field, model in _view_models(config))]


def translation_models(config: RunConfig) -> list[str]:
    """Return the translation models that a run loads, each once: for additional training texts and for views."""
    made_once = config.task.translators if config.task.back_translation is not None else ()
    return list(dict.fromkeys([*made_once, *(model for _field, model in _view_models(config))]))


def named_paths(config: RunConfig) -> list[tuple[str, str]]:
    """Return every file and folder that a config names, with its field."""
    task = config.task
    files = [("task.path", task.path), ("task.test_path", task.test_path)]
    models = [("encoder.id", config.encoder.id), *(("task.translators", name) for name in task.translators)]
    models += _view_models(config)
    found = [(field, path) for field, path in files if path is not None]
    return found + [(field, name) for field, name in models if is_path(name)]


def without_folders(config: RunConfig) -> RunConfig:
    """Return the config with the bare names of local files and models; their folders are private to the machine."""
    # A bare name keeps nothing that `is_path` would take for a path: colons, double dots, leading dots and tildes.
    return with_paths(
        config,
        _last,
        lambda name: _last(name).replace(":", "").replace("..", "").lstrip("~.") if is_path(name) else name,
    )


def with_paths(config: RunConfig, file: Callable[[str], str], model: Callable[[str], str]) -> RunConfig:
    """Return the config with its paths replaced.

    Args:
        file: maps the path of a file.
        model: maps the name of a model.
    """

    def of_view(view: ViewConfig) -> ViewConfig:
        return view.model_copy(update={name: model(str(view.parameters[name])) for name in _model_parameters(view)})

    def of_term(term: TermConfig) -> TermConfig:
        return term.model_copy(update={"views": tuple(map(of_view, term.views))})

    def of_phase(phase: PhaseConfig) -> PhaseConfig:
        terms = tuple(map(of_term, phase.objective.terms))
        return phase.model_copy(update={"objective": phase.objective.model_copy(update={"terms": terms})})

    task = config.task
    changed = {
        "path": None if task.path is None else file(task.path),
        "test_path": None if task.test_path is None else file(task.test_path),
        "translators": tuple(map(model, task.translators)),
    }
    return config.model_copy(
        update={
            "task": task.model_copy(update=changed),
            "encoder": config.encoder.model_copy(update={"id": model(config.encoder.id)}),
            "phases": tuple(map(of_phase, config.phases)),
        }
    )


def _view_models(config: RunConfig) -> list[tuple[str, str]]:
    """Return the models of all views, each with its parameter."""
    views = [view for phase in config.phases for term in phase.objective.terms for view in term.views]
    return [(name, str(view.parameters[name])) for view in views for name in _model_parameters(view)]


def _model_parameters(view: ViewConfig) -> list[str]:
    return [one.name for one in view.entry.parameters if one.kind == "name" and view.entry.by_model]


def _last(path: str) -> str:
    return PureWindowsPath(path).name  # handles both kinds of slash
