"""The rows of runs, stored when a run is submitted, and read to execute, repeat or display it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from core.config import ReadingConfig, TaskConfig
from core.errors import PlaygroundError, StoreError, TaskError, quote_value
from core.events import VALIDATION
from core.store import RunRecord, TaskLibrary, rows_path
from core.tasks import TaskData, load_task
from core.tasks.dataset import read_data, write_data
from core.tasks.load import FileRows, read_rows_of
from core.tasks.rows import file_stamp
from core.workers.processes import ROOT

# The size from which files are read in another process, because this one may serve visitors meanwhile.
LARGE_BYTES = 2**20
# Each of these processes may need a gigabyte.
READERS = threading.Semaphore(2)

Found = TypeVar("Found")


class TaskSource:
    """Loader of a config's rows, from its task or from the stored rows of an earlier run."""

    def __init__(self, folder: Path) -> None:
        """Args: folder: the store's folder. Reading creates nothing in it."""
        self._folder = folder

    def __call__(self, config: TaskConfig, seed: int) -> TaskData:
        """Load the rows from the task, or else stored ones. Raises: errors of `load_task` if both fail."""
        try:
            return load_task(config, seed, TaskLibrary(self._folder).named_rows, read_large_apart)
        except (TaskError, StoreError):
            if (stored := self._stored(config)) is None:
                raise
            return stored

    def rows_of(self, config: TaskConfig, seed: int) -> TaskData:
        """Load the rows of a prepared config, preferring stored ones. Raises: see `__call__`."""
        return self._stored(config) or self(config, seed)

    def _stored(self, config: TaskConfig) -> TaskData | None:
        """Read the stored rows of a config's hash; None if they are missing or damaged."""
        if config.content_hash is None:
            return None
        try:
            return read_data(rows_path(self._folder, config.content_hash), config.content_hash)
        except TaskError:
            return None  # the task may still provide the rows, and checks them


def majority_rate(folder: Path, run: RunRecord, split: str) -> float | None:
    """Return the accuracy of always predicting the most common training class.

    Args:
        folder: the folder of the store that has the run.
        split: "test" or "validation".
    Returns: a fraction; None if an earlier version recorded the run and its rows are gone.
    """
    noted = run.facts.get("majority_rate" if split == VALIDATION else "test_majority_rate")
    return _rates(folder, run.config.task, run.config.seed).get(split) if noted is None else noted


@lru_cache(maxsize=512)
def _rates(folder: Path, task: TaskConfig, seed: int) -> Mapping[str, float]:
    try:
        data = TaskSource(folder).rows_of(task, seed)
    except PlaygroundError:
        return {}
    return {VALIDATION: data.majority_rate(data.validation), "test": data.majority_rate(data.test)}


@lru_cache(maxsize=512)
def train_counts(folder: Path, task: TaskConfig, seed: int) -> tuple[int, ...] | None:
    """Return the training rows of each class of a run; None if its rows are gone.

    Args:
        folder: the folder of the store that has the run.
        task, seed: of the run's prepared config.
    """
    try:
        data = TaskSource(folder).rows_of(task, seed)
    except PlaygroundError:
        return None
    return tuple(data.train.labels.count(label) for label in range(len(data.classes)))


def store_rows(folder: Path, data: TaskData) -> None:
    """Store the exact rows of a run that is about to be created. Runs with the same rows share one file.

    Raises: TaskError if the disk is full or the folder cannot be written.
    """
    path = rows_path(folder, data.content_hash)
    try:
        read_data(path, data.content_hash)
    except TaskError:
        write_data(path, data)  # not stored yet, or damaged
    else:
        os.utime(path)  # marks the file as new, so that it is not purged before the run exists


def read_large_apart(files: tuple[Path, ...], options: ReadingConfig, drop: tuple[str, ...]) -> FileRows:
    """Read the rows of files as `read_rows_of` does, but large files in another process. Raises: as it does."""
    size = sum(file_stamp(file)[1] for file in files)
    return read_apart(files[0].name, size, read_rows_of, files, options, drop)


def read_apart(name: str, size: int, read: Callable[..., Found], *args: object) -> Found:
    """Call a function that reads files, in another process if they are large.

    Args:
        name: name of the first file.
        size: bytes of all files.
        read: a function of a module; its arguments and its result are pickled.
    Raises: errors of the function; TaskError if the process ends without a result.
    """
    if size < LARGE_BYTES:
        return read(*args)
    with READERS:
        done = subprocess.run(
            [sys.executable, "-c", f"from {__name__} import answer_reader; answer_reader()"],
            cwd=ROOT,
            input=pickle.dumps((read, args)),
            stdout=subprocess.PIPE,
            check=False,
        )
    if done.returncode:
        raise TaskError(
            "{file} could not be read because the process that reads it ended: give fewer rows, or close programs "
            "that need memory.",
            file=quote_value(name),
        )
    found: Found | PlaygroundError = pickle.loads(done.stdout)  # noqa: S301 - written by this code
    if isinstance(found, PlaygroundError):
        raise found
    return found


def answer_reader() -> None:
    """Call the function that `read_apart` names on standard input; write its result or its error."""
    read, args = pickle.load(sys.stdin.buffer)  # noqa: S301 - see above
    try:
        found = read(*args)
    except PlaygroundError as error:
        found = error
    sys.stdout.buffer.write(pickle.dumps(found))
