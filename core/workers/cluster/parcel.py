"""Messages between the bridge and a node: a run with all its files, the reports that come back, and its controls.

A node reads nothing from a disk that it would have to share with the app.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.config import RunConfig
from core.config.folders import translation_models
from core.events import Event
from core.messages import N_, Text
from core.models.source import (
    SAFE_WEIGHTS,
    SMALL_FILES,
    TORCH_WEIGHTS,
    encoder_folder,
    has_safe_weights,
    model_folder,
)
from core.store import Store, rows_path
from core.store.attempt import Attempt
from core.training.half_precision import Predictions
from core.weight_files import weight_files
from core.workers.run_rows import TaskSource, keep_rows
from core.workers.run_worker import known_predictions, start_of

TRANSLATIONS = "translations.db"
# A control: kind, name and value, as `core.store.Control` has them.
Asking = tuple[str, str | None, float | None]


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file below the folder of a model, or of a run whose weights it holds from here on."""

    name: str
    content: bytes
    changed_ns: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """An encoder or translation model on this machine.

    Attributes:
        name: as the run's config calls it.
        key: the same for the same files.
    """

    name: str
    key: str
    paths: Mapping[str, Path]

    def read(self) -> list[SentFile]:
        return [SentFile(name, path.read_bytes(), path.stat().st_mtime_ns) for name, path in self.paths.items()]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run, as it is sent to a node.

    Attributes:
        config: the effective one, in JSON form.
        rows: the file of its exact rows.
        weights: of the checkpoint and the snapshots, by file name.
        start: weights of the run that it starts from.
        known: as `core.training.fine_tune` takes it.
        translations: the file that keeps back-translations, where the run has some made.
        models: the key of each model that it loads, by name.
    """

    run_id: str
    attempt: int
    config: str
    rows: bytes
    weights: Mapping[str, bytes]
    start: bytes | None
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


class Switchboard:
    """An actor beside the bridge that holds a list of controls per attempt at a run until the nodes hear them.

    Its methods run in one event loop.
    """

    def __init__(self) -> None:
        self._asked: dict[str, list[Asking]] = defaultdict(list)
        self._news = asyncio.Condition()

    async def ask(self, key: str, control: Asking) -> None:
        """Add a control."""
        async with self._news:
            self._asked[key].append(control)
            self._news.notify_all()

    async def hear(self, key: str, after: int, wait_s: float) -> list[Asking]:
        """The controls behind the first `after`, as soon as there is one; none where none came in `wait_s`."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(lambda: len(self._asked[key]) > after), wait_s)
            except TimeoutError:
                return []
            return self._asked[key][after:]

    async def forget(self, key: str) -> None:
        """An attempt has ended."""
        async with self._news:
            self._asked.pop(key, None)


def models_of(config: RunConfig) -> list[Model]:
    """The models that a run loads. Raises: EncoderError where one cannot be had."""
    found = [_model(config.encoder.id, encoder_folder(config.encoder.id))]
    for name in translation_models(config):
        found.append(_model(name, model_folder(name, what=N_("Translation model"), check=lambda _: None)))
    return found


def _model(name: str, folder: Path) -> Model:
    weights = SAFE_WEIGHTS if has_safe_weights(folder) else TORCH_WEIGHTS
    patterns = (*SMALL_FILES, "*.spm", weights)
    paths = {str(path.relative_to(folder)): path for pattern in patterns for path in sorted(folder.rglob(pattern))}
    stamps = [[name, path.stat().st_size, path.stat().st_mtime_ns] for name, path in sorted(paths.items())]
    return Model(name, hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:16], paths)


def packed(store: Store, attempt: Attempt, models: Sequence[Model]) -> Parcel:
    """A claimed run with everything that it needs but its models.

    Raises: TaskError where its rows cannot be had, TrainingError where it starts from weights that are not there,
        OSError for files that cannot be read.
    """
    config = store.effective_config(attempt.run_id)
    start = start_of(store, config)
    # What is kept may be damaged, and had from where it came: then it is written again.
    data = TaskSource(store.folder).kept(config.task, config.seed)
    keep_rows(store.folder, data)
    return Parcel(
        run_id=attempt.run_id,
        attempt=attempt.number,
        config=config.to_json(),
        rows=rows_path(store.folder, data.content_hash).read_bytes(),
        weights={path.name: path.read_bytes() for path in weight_files(attempt.folder)},
        start=None if start is None else start.read_bytes(),
        known=known_predictions(store, attempt.run_id),
        translations=_translations(store.cache_folder / TRANSLATIONS) if translation_models(config) else None,
        models={model.name: model.key for model in models},
    )


def _translations(path: Path) -> bytes | None:
    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as db:
        return db.serialize()


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
