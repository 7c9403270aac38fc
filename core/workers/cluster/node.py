"""A node carries a run out from what was sent, and every event goes back.

It reads nothing from a disk that it would have to share with the app.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch

from core.config import RunConfig, parse_config
from core.errors import TrainingError
from core.events import Event
from core.messages import Text
from core.models.source import place
from core.tasks.kept import read_data
from core.training.half_precision import Predictions
from core.weight_files import weight_files
from core.workers.run_controls import ControlState
from core.workers.run_worker import is_of_memory, plain_failure, training_events

HEAR_S, ASK_AGAIN_S = 2.0, 0.5
TRANSLATIONS = "translations.db"
ROWS, START, WEIGHTS = "rows.parquet", "start.safetensors", "weights"


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file below the folder of a model, or of a run whose weights it holds from here on."""

    name: str
    content: bytes
    changed_ns: int = 0


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run, as it is sent to a node.

    Attributes:
        config: the effective one, in JSON form.
        files: by path below the folder that the node makes for it: ROWS; in WEIGHTS its checkpoint and snapshots; START
            where it starts from the weights of another run.
        known: as `core.training.fine_tune` takes it.
        translations: the file that keeps back-translations, where the run has some made.
        models: the key of each model that it loads, by name.
    """

    run_id: str
    attempt: int
    config: str
    files: Mapping[str, bytes]
    known: Mapping[int, Predictions]
    translations: bytes | None
    models: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Arrived:
    """A node has the run; `node_id` is Ray's."""

    node_id: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line for the run's log."""

    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The run cannot go on; what a person reads of it, and whether memory was short."""

    message: Text
    of_memory: bool = False


Report = Arrived | Line | SentFile | Failed | Event


def warm() -> None:
    """Import what a run needs, which a process of a node does once."""
    importlib.import_module("transformers.models.auto.modeling_auto")


def work(parcel: Parcel, models: Mapping[str, Sequence[Any]], board: Any) -> Iterator[Report]:
    """Carry a run out, as a Ray task with a streaming return.

    Args:
        models: a reference to the files of each model, by key; lists, so that a node that has them fetches nothing.
        board: the `Switchboard` that holds what is asked of the run.
    Yields: where it is, then the run's events; before an event the weights that were written, and lines of its log.
    """
    yield Arrived(ray.get_runtime_context().get_node_id())
    # Ray gives a task a folder of the node's own, which goes when nobody needs it any more.
    desk = Path.cwd() / "desk"
    desk.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{parcel.run_id}-", dir=desk))
    config = parse_config(parcel.config)
    try:
        yield from _carry_out(parcel, config, models, board, desk, folder)
    except BaseException as error:
        yield Line(traceback.format_exc())
        yield Failed(plain_failure(error, config.phases[-1].batch_size), is_of_memory(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _carry_out(
    parcel: Parcel, config: RunConfig, models: Mapping[str, Sequence[Any]], board: Any, desk: Path, folder: Path
) -> Iterator[Report]:
    if config.resources.cpus is not None:
        torch.set_num_threads(max(1, int(config.resources.cpus)))
    for name, key in parcel.models.items():
        model = desk / f"model-{key}"
        if not model.is_dir():
            unpack_model(ray.get(list(models[key])), model)
        place(name, model)
    (folder / WEIGHTS).mkdir()
    for name, content in parcel.files.items():
        (folder / name).write_bytes(content)
    translations = desk / TRANSLATIONS
    if parcel.translations is not None and not translations.exists():
        translations.write_bytes(parcel.translations)
    if config.task.content_hash is None:
        raise TrainingError("The run was not prepared: start it again.")

    state, closed, lines = ControlState(), threading.Event(), list[str]()
    threading.Thread(target=_hear, args=(board, parcel, state, closed, lines.append), name="ear", daemon=True).start()
    changes = _Changes(folder / WEIGHTS)
    events = training_events(
        config,
        read_data(folder / ROWS, config.task.content_hash),
        folder / WEIGHTS,
        controls=state,
        cache=desk / "cache",
        translations=translations,
        start=folder / START if START in parcel.files else None,
        known=parcel.known,
        log=lines.append,
    )
    try:
        with closing(events):
            for event in events:
                yield from changes.files()
                while lines:
                    yield Line(lines.pop(0))
                yield event
    finally:
        closed.set()


def unpack_model(files: Sequence[SentFile], folder: Path) -> None:
    """Write a model's files, all of them or none. Several runs of one node may do so at once."""
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    for file in files:
        path = partial / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        os.utime(path, ns=(file.changed_ns, file.changed_ns))
    try:
        partial.rename(folder)
    except OSError:
        shutil.rmtree(partial)
        if not folder.is_dir():
            raise


class _Changes:
    """The files of weights that were written since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._stamps()

    def _stamps(self) -> dict[str, tuple[int, int]]:
        # A file takes its place by being renamed, so it is another one each time.
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in weight_files(self._folder)}

    def files(self) -> Iterator[SentFile]:
        now = self._stamps()
        for name in sorted(now):
            if self._seen.get(name) != now[name]:
                yield SentFile(name, (self._folder / name).read_bytes())
        self._seen = now


def _hear(board: Any, parcel: Parcel, state: ControlState, closed: threading.Event, log: Callable[[str], None]) -> None:
    """Apply what is asked of the run, until it has ended."""
    heard = 0
    while not closed.is_set():
        try:
            for control in ray.get(board.hear.remote(f"{parcel.run_id}.{parcel.attempt}", heard, HEAR_S)):
                heard += 1
                state.apply(*control)
        except ray.exceptions.RayError as error:
            # The way there is broken for a moment. Where the bridge is gone for good, Ray ends this task too.
            log(f"The switchboard did not answer ({type(error).__name__}): asking again.")
            closed.wait(ASK_AGAIN_S)
