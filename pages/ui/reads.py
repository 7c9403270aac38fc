"""Cached reads of the store and its experiments. A cache key holds everything that its value depends on."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.advice.prepare import check_models, prepare
from core.advice.score_source import scored_evaluations
from core.config import KnobTurn, ReadingConfig, RunConfig
from core.errors import StoreError, TaskError
from core.events import Evaluation, Step
from core.experiments.design import Design, parse_design
from core.experiments.lifecycle import Experiments
from core.messages import _, language
from core.store import (
    Experiment,
    ExperimentRun,
    LibraryTask,
    RunRecord,
    RunSummary,
    Store,
    TaskLibrary,
    default_folder,
)
from core.store.records import KnobState
from core.tasks import TaskData
from core.tasks.rows import is_own
from core.workers import Engine, Jobs, build_engine
from core.workers import run_rows as rows
from core.workers.limits import check_paths
from core.workers.machine import has_bfloat16, has_gpu
from core.workers.processes import raise_handle_limit

Given = ParamSpec("Given")
Made = TypeVar("Made")

# Cache keys by type. A resumed run keeps its key; a run that is started over gets another.
KNOWN_BY: Mapping[str | type[Any], Callable[[Any], Any]] = {
    Store: lambda store: str(store.folder),
    RunRecord: attrgetter("id", "begun_attempt"),
    RunSummary: attrgetter("id", "begun_attempt"),
    RunConfig: RunConfig.to_json,
    Experiment: attrgetter("id", "design"),
    ExperimentRun: attrgetter("cell", "seed", "run_id", "begun_attempt"),
    Design: Design.to_json,
    ReadingConfig: ReadingConfig.model_dump_json,
    TaskData: attrgetter("content_hash"),
    UploadedFile: attrgetter("file_id"),
}


def cached(
    max_entries: int, *types: type, spinner: bool | str = False, kept_s: float | None = None
) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Cache a function's results, which callers must not change.

    The arguments and the current language identify a result.

    Args:
        types: argument types that are identified by their `key`, in addition to those of `KNOWN_BY`.
        spinner: text shown while the function computes, marked with `N_`.
        kept_s: lifetime of a result in seconds; None keeps it until newer results displace it.
    """
    hashed: dict[str | type[Any], Callable[[Any], Any]] = {**KNOWN_BY, **dict.fromkeys(types, attrgetter("key"))}

    def decorate(function: Callable[Given, Made]) -> Callable[Given, Made]:
        @wraps(function)
        def kept(*args: Any, in_language: str, **kwargs: Any) -> Made:
            return function(*args, **kwargs)

        @lru_cache
        def cache(code: str) -> Callable[..., Made]:
            """Return the cache with the spinner in a language. All languages share its results, keyed by language."""
            said = _(spinner) if isinstance(spinner, str) else spinner
            return st.cache_resource(show_spinner=said, max_entries=max_entries, ttl=kept_s, hash_funcs=hashed)(kept)

        @wraps(function)
        def found(*args: Given.args, **kwargs: Given.kwargs) -> Made:
            return cache(language())(*args, in_language=language(), **kwargs)

        return found

    return decorate


@st.cache_resource(show_spinner=False)
def _open(kind: Callable[[str], Made], folder: str) -> Made:
    return kind(folder)


@st.cache_resource(show_spinner=False)
def engine_of(folder: str) -> Engine:
    """Return the engine of a store's folder; callers need not start it."""
    raise_handle_limit()
    return build_engine(Store(folder))


def open_engine() -> Engine:
    """Return this server's engine; warm it up, dispatch the queue and purge deletions that can no longer be undone."""
    engine = engine_of(str(default_folder().absolute()))
    engine.warm_up()
    engine.dispatch()
    engine.store.purge_discarded()
    library().purge_discarded()
    return engine


def library() -> TaskLibrary:
    """Return the library of tasks that users added to this server's store."""
    return _open(TaskLibrary, str(default_folder().absolute()))


def own_tasks() -> dict[str, LibraryTask]:
    """Return the added tasks that a run can train on, by id."""
    return {task.id: task for task in library().tasks()}


def jobs() -> Jobs:
    """Return the long jobs of this server's store, such as fetching a data set."""
    return _open(Jobs, str(default_folder().absolute()))


@cached(64)
def _step_log(store: Store, run: RunRecord) -> tuple[list[Step], threading.Lock]:
    """Return the steps of one attempt, and the lock under which `steps` extends them."""
    return [], threading.Lock()


def steps(store: Store, run: RunRecord) -> list[Step]:
    """Return all steps of a run so far; read only the new ones."""
    known, lock = _step_log(store, run)
    with lock:
        known += store.steps(run.id, after=known[-1].step if known else 0)
    return known


@dataclass(frozen=True, slots=True)
class RunNow:
    """Snapshot of a run in the store.

    Attributes:
        config: effective config, with all knob turns so far.
        scores: the meaningful evaluations.
        turns: knob turns, as the curves mark them.
    """

    store: Store
    run: RunRecord
    steps: list[Step]
    evaluations: Sequence[Evaluation]
    scores: Sequence[Evaluation]
    turns: Sequence[KnobTurn]
    knobs: KnobState

    @property
    def config(self) -> RunConfig:
        return self.run.effective

    @property
    def key(self) -> str:
        """Key of the snapshot. Counts identify it, because data is only appended."""
        counts = f"{len(self.steps)} {len(self.scores)} {len(self.turns)}"
        return f"{self.run.id} {self.run.begun_attempt} {counts}"


def run_now(store: Store, run: RunRecord) -> RunNow:
    """Read the progress of a run for its page."""
    evaluations = store.evaluations(run.id)
    return RunNow(
        store,
        run,
        steps(store, run),
        evaluations,
        scored_evaluations(run.effective, evaluations),
        tuple(store.knob_turns(run.id)),
        store.knob_state(run.id),
    )


@cached(16)
def _prepared(draft: RunConfig, stamps: tuple[tuple[str, float, int], ...]) -> tuple[RunConfig, TaskData]:
    return prepare(
        draft, gpu=has_gpu(), bfloat16=has_bfloat16(draft.device), load=rows.TaskSource(default_folder().absolute())
    )


def prepared(draft: RunConfig) -> tuple[RunConfig, TaskData]:
    """Return a draft with its defaults filled in, and its data; read it again when a file changes.

    Raises: ConfigError, TaskError or EncoderError with a one-sentence message.
    """
    check_paths(draft)
    check_models(draft)
    stamps: list[tuple[str, float, int]] = []
    for path in (draft.task.path, draft.task.test_path):
        try:
            status = os.stat(path or "")
            stamps.append((str(path), status.st_mtime_ns, status.st_size))
        except (OSError, ValueError):
            stamps.append((str(path), 0, 0))
    if is_own(draft.task.id):
        with contextlib.suppress(TaskError, StoreError):  # `prepare` reports the problem
            stamps.append((draft.task.id, library().task(draft.task.id).changed_at, 0))
    return _prepared(draft, tuple(stamps))


@st.cache_resource(show_spinner=False, max_entries=1)
def _experiments(folder: str) -> Experiments:
    return Experiments(engine_of(folder))


def open_experiments(engine: Engine) -> Experiments:
    """Return the experiments of an engine's store."""
    return _experiments(str(engine.store.folder))


@cached(64)
def design_of(experiment: Experiment) -> Design:
    """Return the design of an experiment."""
    return parse_design(experiment.design)
