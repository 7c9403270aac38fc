"""Tasks that people brought, from a file or from the Hub: kept by content, listed, renamed, deleted.

Each is two files in the library's folder: the rows, named by their hash and never changed, and what is said of them.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from filelock import FileLock

from core.errors import ConfigError, TaskError, shown
from core.tasks.rows import Kind, Rows, read_rows_file, write_rows

OWN = "own-"
TASK_ID = re.compile(rf"{OWN}[0-9a-f]{{16}}")
MAX_NAME_CHARS = 80
LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class LibraryTask:
    """What is said of a task.

    Attributes:
        id: `own-` and the first 16 hexadecimal digits of the rows' SHA-256.
        source: one sentence on where the rows come from.
        classes: rows of every class, the commonest first; empty for similarity scores.
        splits: rows of every split that the source names; empty where it names none.
    """

    id: str
    name: str
    source: str
    kind: Kind
    pairs: bool
    rows: int
    classes: dict[str, int]
    splits: dict[str, int]
    created_at: float
    discarded_at: float | None = None


class TaskLibrary:
    """The tasks in a folder, which comes into being with the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, rows: Rows, *, name: str, source: str) -> LibraryTask:
        """Keep rows; those that are here already keep the name that they have.

        Raises: ConfigError for a name that is empty or too long; TaskError when the folder cannot be written.
        """
        name = checked_name(name)
        task_id = OWN + rows.content_hash[:16]
        with self._changing():
            if self._about(task_id).is_file():
                task = replace(self._read(task_id), discarded_at=None)
            else:
                write_rows(self._rows(task_id), rows, {})
                task = LibraryTask(
                    id=task_id,
                    name=self._free_name(name),
                    source=source,
                    kind=rows.kind,
                    pairs=rows.seconds is not None,
                    rows=len(rows),
                    classes=dict(Counter(rows.labels).most_common()) if rows.kind == "classes" else {},
                    splits=dict(Counter[str](rows.splits or ())),
                    created_at=time.time(),
                )
            self._write(task)
        return task

    def tasks(self) -> list[LibraryTask]:
        """All that were not discarded, newest first; a damaged entry is left out."""
        found = []
        for path in sorted(self.folder.glob(f"{OWN}*.json")):
            try:
                found.append(self._read(path.stem))
            except TaskError:
                continue  # `task` says what is wrong with it to whoever asks for this very one
        kept = [task for task in found if task.discarded_at is None]
        return sorted(kept, key=lambda task: task.created_at, reverse=True)

    def task(self, task_id: str) -> LibraryTask:
        """Raises: TaskError when there is no such task, or its entry is damaged."""
        if not TASK_ID.fullmatch(task_id) or not self._about(task_id).is_file():
            raise _missing(task_id)
        task = self._read(task_id)
        if task.discarded_at is not None:
            raise _missing(task_id)
        return task

    def find(self, text: str) -> LibraryTask:
        """A task by its id or its name. Raises: TaskError naming those that exist."""
        tasks = self.tasks()
        for task in tasks:
            if text in (task.id, task.name):
                return task
        names = ", ".join(task.name for task in tasks[:10])
        raise TaskError(
            f"There is no task {shown(text)} of your own: " + (f"there are {names}." if names else "add one.")
        )

    def rows(self, task_id: str) -> Rows:
        """Raises: TaskError when there is no such task, or its file is damaged."""
        self.task(task_id)
        rows = _rows_of(str(self._rows(task_id)))
        if OWN + rows.content_hash[:16] != task_id:
            raise TaskError(f"The rows of task {task_id} are damaged: delete it and add it again.")
        return rows

    def rename(self, task_id: str, name: str) -> LibraryTask:
        """Raises: ConfigError for a name that is empty, too long or taken; TaskError for no such task."""
        name = checked_name(name)
        with self._changing():
            task = self.task(task_id)
            if any(other.name == name and other.id != task_id for other in self.tasks()):
                raise ConfigError("name", name, "another task has it; choose another name.")
            task = replace(task, name=name)
            self._write(task)
        return task

    def discard(self, task_id: str) -> None:
        """Take a task out of sight; `restore` brings it back until `purge_discarded` frees its rows.

        Runs keep their own rows, so none of them misses it.
        """
        with self._changing():
            self._write(replace(self.task(task_id), discarded_at=time.time()))

    def restore(self, task_id: str) -> None:
        """Undo `discard`. Raises: TaskError when the rows are gone already."""
        if not TASK_ID.fullmatch(task_id) or not self._about(task_id).is_file():
            raise TaskError(f"Task {shown(task_id)} is deleted for good: add it again.")
        with self._changing():
            self._write(replace(self._read(task_id), discarded_at=None))

    def purge_discarded(self, older_than_s: float) -> None:
        """Delete what was discarded longer ago than that."""
        if not self.folder.is_dir():
            return
        limit = time.time() - older_than_s
        with self._changing():
            for path in list(self.folder.glob(f"{OWN}*.json")):
                try:
                    task = self._read(path.stem)
                except TaskError:
                    continue  # nobody discarded it, and `task` says what is wrong
                if task.discarded_at is not None and task.discarded_at <= limit:
                    self._rows(task.id).unlink(missing_ok=True)
                    path.unlink(missing_ok=True)

    def _free_name(self, name: str) -> str:
        taken = {task.name for task in self.tasks()}
        number = 2
        free = name
        while free in taken:
            suffix = f" ({number})"
            free = name[: MAX_NAME_CHARS - len(suffix)] + suffix
            number += 1
        return free

    def _changing(self) -> FileLock:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TaskError(f"The task folder {shown(str(self.folder))} cannot be made ({error.strerror}).") from None
        return FileLock(self.folder / ".lock", timeout=LOCK_TIMEOUT_S)

    def _about(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.json"

    def _rows(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.parquet"

    def _read(self, task_id: str) -> LibraryTask:
        try:
            given = json.loads(self._about(task_id).read_text(encoding="utf-8"))
            return LibraryTask(**given)
        except (OSError, ValueError, TypeError) as error:
            raise TaskError(f"Task {task_id} cannot be read ({shown(str(error))}): add it again.") from None

    def _write(self, task: LibraryTask) -> None:
        partial = self.folder / f".{uuid.uuid4().hex}.partial"
        try:
            partial.write_text(json.dumps(asdict(task), ensure_ascii=False), encoding="utf-8")
            os.replace(partial, self._about(task.id))
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise TaskError(
                f"The task folder {shown(str(self.folder))} cannot be written ({error.strerror})."
            ) from None


@lru_cache(maxsize=4)
def _rows_of(path: str) -> Rows:
    """Rows never change under their name."""
    return read_rows_file(Path(path))[0]


def checked_name(name: str) -> str:
    """A name without white space around it. Raises: ConfigError when it is empty or too long."""
    name = " ".join(name.split())
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise ConfigError("name", name, f"give a name of 1 to {MAX_NAME_CHARS} characters.")
    return name


def is_own(task_id: str) -> bool:
    return task_id.startswith(OWN)


def _missing(task_id: str) -> TaskError:
    return TaskError(f"Task {shown(task_id)} is not in this library: add its file or Hub data set on the Data page.")
