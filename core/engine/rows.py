"""The rows of runs: kept when a run is submitted, read by whoever carries it out or shows it."""

from __future__ import annotations

import os

from core.config import RunConfig
from core.store import Store
from core.tasks import TaskData, TaskLibrary, load_task
from core.tasks.kept import read_data, write_data

TASKS_FOLDER = "tasks"


def library(store: Store) -> TaskLibrary:
    """The tasks that people brought to this store."""
    return TaskLibrary(store.folder / TASKS_FOLDER)


def keep_rows(store: Store, data: TaskData) -> None:
    """Keep the exact rows of a run that is about to be created, once for all runs with the same.

    Raises: TaskError when the disk is full or the folder cannot be written.
    """
    path = store.rows_path(data.content_hash)
    if path.is_file():
        os.utime(path)  # new again, so that nobody frees them before the run is there
    else:
        write_data(path, data)


def run_rows(store: Store, config: RunConfig) -> TaskData:
    """The rows that a prepared run was made with.

    Raises: TaskError when they are damaged, or were not kept and their source has changed.
    """
    content_hash = config.task.content_hash
    if content_hash is not None and (path := store.rows_path(content_hash)).is_file():
        return read_data(path, content_hash)
    return load_task(config.task, config.seed, library(store))
