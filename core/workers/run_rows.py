"""The rows of runs: kept when a run is submitted, read by whoever carries it out, repeats it or shows it."""

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
from core.tasks.kept import read_data, write_data


class TaskSource:
    """Where the rows of a config come from: its task, or what is kept of an earlier run with the very same rows."""

    def __init__(self, folder: Path) -> None:
        """`folder` is a store's; nothing is created in it by reading."""
        self._folder = folder

    def __call__(self, config: TaskConfig, seed: int) -> TaskData:
        """The rows. Raises: TaskError, StoreError or ConfigError of `load_task`, when they are not kept either."""
        try:
            return load_task(config, seed, TaskLibrary(self._folder))
        except (TaskError, StoreError):
            if (kept := self._kept(config)) is None:
                raise
            return kept

    def kept(self, config: TaskConfig, seed: int) -> TaskData:
        """The rows of a prepared config, first of all from what is kept. Raises: as calling it."""
        return self._kept(config) or self(config, seed)

    def _kept(self, config: TaskConfig) -> TaskData | None:
        """What is kept under the hash of a config; None where it is not there, or damaged."""
        if config.content_hash is None:
            return None
        try:
            return read_data(rows_path(self._folder, config.content_hash), config.content_hash)
        except TaskError:
            return None  # the rows may still be had from where they came, and are checked there


def majority_rate(folder: Path, run: RunRecord, split: str) -> float | None:
    """Share of a split's rows that a run's commonest training class gets right.

    Args:
        folder: of the store that has the run; split: "test" or "validation".
    Returns: None where an earlier version made the run and its rows are gone.
    """
    noted = run.facts.get("majority_rate" if split == VALIDATION else "test_majority_rate")
    return _rates(folder, run.config.task, run.config.seed).get(split) if noted is None else noted


@lru_cache(maxsize=512)
def _rates(folder: Path, task: TaskConfig, seed: int) -> Mapping[str, float]:
    try:
        data = TaskSource(folder).kept(task, seed)
    except PlaygroundError:
        return {}
    return {VALIDATION: data.majority_rate, "test": data.test_majority_rate}


def keep_rows(folder: Path, data: TaskData) -> None:
    """Keep the exact rows of a run that is about to be created, once for all runs with the same.

    Raises: TaskError when the disk is full or the folder cannot be written.
    """
    path = rows_path(folder, data.content_hash)
    try:
        read_data(path, data.content_hash)
    except TaskError:
        write_data(path, data)  # not here yet, or damaged
    else:
        os.utime(path)  # new again, so that nobody frees them before the run is there
