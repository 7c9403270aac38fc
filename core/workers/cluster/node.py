"""Execution of a run on a node, from the data sent to it. Every event is sent back.

A node needs no disk shared with the app.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch

from core.atomic import atomic_write
from core.config import RunConfig, parse_config
from core.errors import TrainingError
from core.events import Event
from core.models.source import register_folder
from core.tasks import TaskData
from core.weight_files import weight_files
from core.workers.failures import is_of_memory, plain_failure
from core.workers.run_controls import ControlState
from core.workers.run_worker import training_events

HEAR_S, ASK_AGAIN_S = 2.0, 0.5
TRANSLATIONS = "translations.db"
START, WEIGHTS = "start.safetensors", "weights"


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
        key: the run's id and the number of the attempt.
        config: the effective config as JSON.
        files: contents by path in the run's folder on the node: checkpoint and snapshots in WEIGHTS; START if the run
            starts from the weights of another run; TRANSLATIONS if it uses stored back-translations.
        models: key of each model that it loads, by name, and a reference to each of its files, by path. Ray does not
            resolve references in a dataclass, so a node that has a file does not fetch it.
    """

    key: str
    config: str
    data: TaskData
    files: Mapping[str, bytes]
    models: Mapping[str, tuple[str, Mapping[str, Any]]]


# A node reports its id first. A string is a line for the run's log; an exception is the error that ended the run.
Report = str | SentFile | Event | MemoryError | TrainingError


def work(parcel: Parcel, board: Any) -> Iterator[Report]:
    """Execute a run, as a Ray task with a streaming return.

    Args:
        board: the `Switchboard` with the run's controls.
    Yields: the node's id, then the run's events, each preceded by newly written weights and log lines.
    """
    yield ray.get_runtime_context().get_node_id()
    # Ray runs a task in a folder of the node, which it deletes when no task needs it any more.
    desk = Path.cwd() / "desk"
    desk.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{parcel.key}-", dir=desk))
    weights, config = folder / WEIGHTS, parse_config(parcel.config)
    state, lines, ended = ControlState(), list[str](), threading.Event()
    controls = (board, parcel.key, state, ended, lines.append)
    try:
        threading.Thread(target=_listen, args=controls, name="ear", daemon=True).start()
        events = _begin(parcel, config, desk, folder, state, lines.append)
        stamps = _stamps(weights)
        with closing(events):
            for event in events:
                before, stamps = stamps, _stamps(weights)
                for name, _inode, _changed_ns in sorted(stamps - before):
                    yield SentFile(name, (weights / name).read_bytes())
                while lines:
                    yield lines.pop(0)
                yield event
    except BaseException as error:
        yield traceback.format_exc()
        # Some exceptions cannot be unpickled on another machine.
        message = plain_failure(error, config.phases[-1].batch_size)
        yield MemoryError() if is_of_memory(error) else TrainingError(message)
    finally:
        ended.set()
        shutil.rmtree(folder, ignore_errors=True)


def _begin(
    parcel: Parcel, config: RunConfig, desk: Path, folder: Path, state: ControlState, log: Callable[[str], None]
) -> Generator[Event, None, None]:
    """Write the files of a run and of its models, and begin its training."""
    if config.resources.cpus is not None:
        torch.set_num_threads(max(1, int(config.resources.cpus)))
    for model, (key, references) in parcel.models.items():
        for name, reference in references.items():
            path = desk / f"model-{key}" / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path) as partial:  # other runs on this node may write it as well
                    file = ray.get(reference)
                    partial.write_bytes(file.content)
                    os.utime(partial, ns=(file.changed_ns, file.changed_ns))
        register_folder(model, desk / f"model-{key}")
    (folder / WEIGHTS).mkdir()
    for name, content in parcel.files.items():
        (folder / name).write_bytes(content)
    translations = desk / TRANSLATIONS  # runs on this node share them
    if TRANSLATIONS in parcel.files and not translations.exists():
        (folder / TRANSLATIONS).rename(translations)
    return training_events(
        config,
        parcel.data,
        folder / WEIGHTS,
        controls=state,
        cache=desk / "cache",
        translations=translations,
        start=folder / START if START in parcel.files else None,
        log=log,
    )


def _stamps(folder: Path) -> set[tuple[str, int, int]]:
    # Files are replaced by renaming, so a new version has a new inode.
    return {(path.name, path.stat().st_ino, path.stat().st_mtime_ns) for path in weight_files(folder)}


def _listen(board: Any, key: str, state: ControlState, ended: threading.Event, log: Callable[[str], None]) -> None:
    """Poll and apply the run's controls until it has ended."""
    applied = 0
    while not ended.is_set():
        try:
            for control in ray.get(board.controls.remote(key, applied, HEAR_S)):
                applied += 1
                state.apply(*control)
        except ray.exceptions.RayError as error:
            # A temporary connection failure. If the bridge is gone for good, Ray ends this task too.
            log(f"The switchboard did not answer ({type(error).__name__}): asking again.")
            ended.wait(ASK_AGAIN_S)
