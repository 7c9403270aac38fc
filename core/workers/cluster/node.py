"""Execution of a run on a node, from the data sent to it. Every event is sent back.

A node needs no disk shared with the app.
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
from core.tasks.dataset import read_data
from core.training.fine_tune import Predictions
from core.weight_files import weight_files
from core.workers.failures import is_of_memory, plain_failure
from core.workers.run_controls import ControlState
from core.workers.run_worker import training_events

HEAR_S, ASK_AGAIN_S = 2.0, 0.5
TRANSLATIONS = "translations.db"
ROWS, START, WEIGHTS = "rows.parquet", "start.safetensors", "weights"


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a model, or a new file of a run's weights, with its relative path."""

    name: str
    content: bytes
    changed_ns: int = 0


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run as sent to a node.

    Attributes:
        config: the effective config as JSON.
        files: contents by path in the run's folder on the node: ROWS; checkpoint and snapshots in WEIGHTS; START if the
            run starts from the weights of another run.
        known: see `core.training.fine_tune`.
        translations: content of the file of stored back-translations, if the run uses any.
        models: key of each model that it loads, by name.
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
    """Report that the run has arrived on a node. Attributes: node_id: Ray's id of the node."""

    node_id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Report that the run failed.

    Attributes:
        message: the user-facing message.
        of_memory: True for an out-of-memory error.
    """

    message: Text
    of_memory: bool = False


# A string is a line for the run's log.
Report = Arrived | str | SentFile | Failed | Event


def warm() -> None:
    """Import the libraries of a run in a process of a node, ahead of its first run."""
    importlib.import_module("transformers.models.auto.modeling_auto")


def work(parcel: Parcel, models: Mapping[str, Sequence[Any]], board: Any) -> Iterator[Report]:
    """Execute a run, as a Ray task with a streaming return.

    Args:
        models: references to the files of each model, by key. Ray does not resolve references in lists, so a node that
            has the files fetches nothing.
        board: the `Switchboard` with the run's controls.
    Yields: the node's id, then the run's events, each preceded by newly written weights and log lines.
    """
    yield Arrived(ray.get_runtime_context().get_node_id())
    # Ray runs a task in a folder of the node, which it deletes when no task needs it any more.
    desk = Path.cwd() / "desk"
    desk.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{parcel.run_id}-", dir=desk))
    config = parse_config(parcel.config)
    try:
        yield from _carry_out(parcel, config, models, board, desk, folder)
    except BaseException as error:
        yield traceback.format_exc()
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
    weights, stamps = folder / WEIGHTS, _stamps(folder / WEIGHTS)
    events = training_events(
        config,
        read_data(folder / ROWS, config.task.content_hash),
        weights,
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
                before, stamps = stamps, _stamps(weights)
                for name, _stamp in sorted(stamps.items() - before.items()):
                    yield SentFile(name, (weights / name).read_bytes())
                while lines:
                    yield lines.pop(0)
                yield event
    finally:
        closed.set()


def unpack_model(files: Sequence[SentFile], folder: Path) -> None:
    """Write a model's files, all or none. Several runs on one node may do so concurrently."""
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


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    # Files are replaced by renaming, so a new version has a new inode.
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in weight_files(folder)}


def _hear(board: Any, parcel: Parcel, state: ControlState, closed: threading.Event, log: Callable[[str], None]) -> None:
    """Poll and apply the run's controls until it has ended."""
    heard = 0
    while not closed.is_set():
        try:
            for control in ray.get(board.hear.remote(f"{parcel.run_id}.{parcel.attempt}", heard, HEAR_S)):
                heard += 1
                state.apply(*control)
        except ray.exceptions.RayError as error:
            # A temporary connection failure. If the bridge is gone for good, Ray ends this task too.
            log(f"The switchboard did not answer ({type(error).__name__}): asking again.")
            closed.wait(ASK_AGAIN_S)
