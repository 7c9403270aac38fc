"""What happens on a node: a run is carried out from what was sent, and every event goes back."""

from __future__ import annotations

import importlib
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import ray
import torch

from core.config import RunConfig, parse_config
from core.errors import TrainingError
from core.models.source import place
from core.tasks.kept import read_data
from core.weight_files import weight_files
from core.workers.cluster.parcel import TRANSLATIONS, Arrived, Failed, Line, Parcel, Report, SentFile, unpack_model
from core.workers.run_controls import ControlState
from core.workers.run_worker import is_of_memory, plain_failure, training_events

HEAR_S, ASK_AGAIN_S = 2.0, 0.5


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
    rows, start, weights = folder / "rows.parquet", folder / "start.safetensors", folder / "weights"
    rows.write_bytes(parcel.rows)
    weights.mkdir()
    for name, content in parcel.weights.items():
        (weights / name).write_bytes(content)
    if parcel.start is not None:
        start.write_bytes(parcel.start)
    translations = desk / TRANSLATIONS
    if parcel.translations is not None and not translations.exists():
        translations.write_bytes(parcel.translations)
    if config.task.content_hash is None:
        raise TrainingError("The run was not prepared: start it again.")

    changes, lines = _Changes(weights), list[str]()
    with _Ear(board, f"{parcel.run_id}.{parcel.attempt}", lines.append) as ear:
        events = training_events(
            config,
            read_data(rows, config.task.content_hash),
            weights,
            controls=ear.state,
            cache=desk / "cache",
            translations=translations,
            start=start if parcel.start is not None else None,
            known=parcel.known,
            log=lines.append,
        )
        with closing(events):
            for event in events:
                yield from changes.files()
                while lines:
                    yield Line(lines.pop(0))
                yield event


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


class _Ear:
    """Hears what is asked of the run, in a thread of its own."""

    def __init__(self, board: Any, key: str, log: Callable[[str], None]) -> None:
        self.state = ControlState()
        self._log = log
        self._board, self._key, self._closed = board, key, threading.Event()
        self._thread = threading.Thread(target=self._listen, name="ear", daemon=True)

    def __enter__(self) -> _Ear:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def _listen(self) -> None:
        heard = 0
        while not self._closed.is_set():
            try:
                for control in ray.get(self._board.hear.remote(self._key, heard, HEAR_S)):
                    heard += 1
                    self.state.apply(*control)
            except ray.exceptions.RayError as error:
                # The way there is broken for a moment. Where the bridge is gone for good, Ray ends this task too.
                self._log(f"The switchboard did not answer ({type(error).__name__}): asking again.")
                self._closed.wait(ASK_AGAIN_S)
