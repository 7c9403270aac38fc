"""The rows of runs, stored when a run is submitted, and read to execute, repeat or display it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from core.config import TaskConfig
from core.errors import PlaygroundError, StoreError, TaskError
from core.events import VALIDATION
from core.store import RunRecord, TaskLibrary, rows_path
from core.tasks import TaskData, load_task
from core.tasks.dataset import read_data, write_data


class TaskSource:
    """Loader of a config's rows, from its task or from the stored rows of an earlier run."""

    def __init__(self, folder: Path) -> None:
        """Args: folder: the store's folder. Reading creates nothing in it."""
        self._folder = folder

    def __call__(self, config: TaskConfig, seed: int) -> TaskData:
        """Load the rows from the task, or else stored ones. Raises: errors of `load_task` if both fail."""
        try:
            return load_task(config, seed, TaskLibrary(self._folder))
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
    return {VALIDATION: data.majority_rate, "test": data.test_majority_rate}


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
