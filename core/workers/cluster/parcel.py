"""What a node needs to carry a run out: nothing is read from a disk that it would have to share with the app."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.config import RunConfig
from core.config.folders import translation_models
from core.messages import N_
from core.models.source import (
    SAFE_WEIGHTS,
    SMALL_FILES,
    TORCH_WEIGHTS,
    encoder_folder,
    has_safe_weights,
    model_folder,
)
from core.store import Store
from core.store.attempt import Attempt
from core.tasks.kept import write_data
from core.training.half_precision import Predictions
from core.weight_files import weight_files
from core.workers.run_rows import TaskSource
from core.workers.run_worker import known_predictions, start_of

TRANSLATIONS = "translations.db"


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a model: its place in the model's folder, and when it was written."""

    name: str
    changed_ns: int
    content: bytes


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
        return [SentFile(name, path.stat().st_mtime_ns, path.read_bytes()) for name, path in self.paths.items()]


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
    return Parcel(
        run_id=attempt.run_id,
        attempt=attempt.number,
        config=config.to_json(),
        rows=_rows(store, config),
        weights={path.name: path.read_bytes() for path in weight_files(attempt.folder)},
        start=None if start is None else start.read_bytes(),
        known=known_predictions(store, attempt.run_id),
        translations=_translations(store.cache_folder / TRANSLATIONS) if translation_models(config) else None,
        models={model.name: model.key for model in models},
    )


def _rows(store: Store, config: RunConfig) -> bytes:
    """The file of a run's rows, written again: what is kept may be damaged, and had from where it came."""
    data = TaskSource(store.folder).kept(config.task, config.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_data(path, data)
        return path.read_bytes()


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
