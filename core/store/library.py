"""User-provided tasks, from a file or from the Hub, identified by their content.

The metadata of a task is a row of the database. Its rows are in a file in `tasks/`, which is named after their hash and
never changes. The file is written first, so that every listed task has its rows.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from core.config import OWN_TASK, TaskConfig
from core.errors import ConfigError, StoreError, TaskError, quote_value
from core.messages import join_list
from core.store.database import DATABASE, UNDO_S, Database, build_record
from core.store.names import NAME_CHARS, checked_task_name
from core.tasks.rows import Kind, Rows, file_stamp, one_line, read_rows_file, write_rows

FOLDER = "tasks"
# Age at which a file without a task is a leftover. A newer one may belong to an addition in progress.
LEFTOVER_S = 3600.0
TASK_ID = re.compile(rf"{OWN_TASK}[0-9a-f]{{16}}")


@dataclass(frozen=True, slots=True)
class LibraryTask:
    """Metadata of a task.

    Attributes:
        id: `own-` and the first 16 hexadecimal digits of the rows' SHA-256.
        source: origin of the rows, in one sentence.
        classes: number of rows of each class, most common first; empty for similarity scores.
        splits: number of rows of each split that the source names; empty if it names none.
        created_at, changed_at: seconds since the epoch.
        discarded_at: seconds since the epoch; None unless the task was deleted.
        owner: the visitor who added it; None if unknown.
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
    changed_at: float = field(compare=False)
    discarded_at: float | None = None
    owner: str | None = None


class TaskLibrary:
    """The tasks in a store's folder. Reading creates nothing there.

    Every method raises StoreError if the database cannot be read or changed.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.rows_folder = self.folder / FOLDER

    def add(self, rows: Rows, *, name: str, source: str, owner: str | None = None) -> LibraryTask:
        """Add rows as a task. Rows that are already in the library keep their current name and owner; see `find_rows`.

        A damaged file of these rows is rewritten.

        Raises: ConfigError for a name that is empty or too long; TaskError if the folder cannot be written.
        """
        name = checked_task_name(name)
        task_id = task_id_of(rows)
        try:
            self.rows_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TaskError(
                "The task folder {folder} cannot be created ({reason}): free space and check its permissions, or "
                "choose another folder with SCL_RUNS.",
                folder=quote_value(str(self.rows_folder)),
                reason=one_line(error),
            ) from None
        write_rows(self._file(task_id), rows, {})  # outside the transaction, because it is slow
        with self._database.transaction() as db:
            if not self._file(task_id).is_file():
                write_rows(self._file(task_id), rows, {})  # another process purged them meanwhile
            now = time.time()
            if self.find_rows(rows) is None:
                # A discarded task is replaced; only its creation time is kept.
                kept = db.execute("DELETE FROM tasks WHERE id = ? RETURNING created_at", (task_id,)).fetchone()
                classes = dict(Counter(rows.labels).most_common()) if rows.kind == "classes" else {}
                self._database.insert(
                    "tasks",
                    id=task_id,
                    name=self._free_name(name),
                    source=source,
                    kind=rows.kind,
                    pairs=rows.seconds is not None,
                    rows=len(rows),
                    classes=json.dumps(classes, ensure_ascii=False),
                    splits=json.dumps(Counter[str](rows.splits or ())),
                    created_at=kept["created_at"] if kept else now,
                    changed_at=now,
                    owner=owner,
                )
            db.execute("UPDATE tasks SET changed_at = ? WHERE id = ?", (now, task_id))
        return self.task(task_id)

    def tasks(self) -> list[LibraryTask]:
        """Return all tasks that are not discarded, newest first."""
        return self._tasks("discarded_at IS NULL ORDER BY created_at DESC, id")

    def find_rows(self, rows: Rows) -> LibraryTask | None:
        """Return the task with exactly these rows; None if there is none."""
        return next(iter(self._tasks("discarded_at IS NULL AND id = ?", task_id_of(rows))), None)

    def task(self, task_id: str) -> LibraryTask:
        """Return a task's metadata. Raises: TaskError for an unknown id."""
        found = self._tasks("discarded_at IS NULL AND id = ?", task_id)
        if not found:
            raise TaskError(
                "Task {id} is not in this library: add its file or Hub data set on the Data page.",
                id=quote_value(task_id),
            )
        return found[0]

    def named_rows(self, task_id: str) -> tuple[Rows, str]:
        """Read a task's rows, with its name. Raises: TaskError for an unknown id or a damaged file."""
        return self.rows(task_id), self.task(task_id).name

    def with_current_name(self, task: TaskConfig) -> TaskConfig:
        """Return a task's config with the current name of the task; unchanged if the library lacks the task."""
        names = {one.id: one.name for one in self.tasks()}
        return task.model_copy(update={"name": names.get(task.id, task.name)})

    def find(self, text: str) -> LibraryTask:
        """Find a task by its id or name. Raises: TaskError that lists up to ten existing tasks."""
        tasks = self.tasks()
        for task in tasks:
            if text in (task.id, task.name):
                return task
        names = join_list(task.name for task in tasks[:10])
        if not names:
            raise TaskError("You have no task {name}: add one.", name=quote_value(text))
        raise TaskError("You have no task {name}; your tasks are {names}.", name=quote_value(text), names=names)

    def rows(self, task_id: str) -> Rows:
        """Read a task's rows. Raises: TaskError for an unknown id or a damaged file."""
        self.task(task_id)
        rows = _rows_of(self._file(task_id), file_stamp(self._file(task_id)))
        if task_id_of(rows) != task_id:
            raise TaskError("The rows of task {id} are damaged: delete it, or add its data again.", id=task_id)
        return rows

    def rename(self, task_id: str, name: str) -> LibraryTask:
        """Rename a task.

        Raises: ConfigError for a name that is empty, too long or taken; TaskError for an unknown id.
        """
        name = checked_task_name(name)
        with self._database.transaction() as db:
            self.task(task_id)
            if any(other.name == name and other.id != task_id for other in self.tasks()):
                raise ConfigError("name", name, "another task has this name; choose another.")
            db.execute("UPDATE tasks SET name = ?, changed_at = ? WHERE id = ?", (name, time.time(), task_id))
        return self.task(task_id)

    def discard(self, task_id: str) -> None:
        """Hide a task; `restore` undoes this until `purge_discarded` deletes its rows.

        Runs store their own rows, so they do not depend on the task.

        Raises: TaskError for an unknown id.
        """
        with self._database.transaction() as db:
            self.task(task_id)
            db.execute("UPDATE tasks SET discarded_at = ? WHERE id = ?", (time.time(), task_id))

    def discarded(self, within_s: float = UNDO_S) -> list[LibraryTask]:
        """Return the tasks discarded within the last `within_s` seconds, most recently discarded first."""
        return self._tasks("discarded_at > ? ORDER BY discarded_at DESC", time.time() - within_s)

    def delete(self, task_id: str) -> None:
        """Delete a task permanently. Raises: TaskError for an unknown id."""
        with self._database.transaction() as db:
            self.task(task_id)
            self._free(db, task_id)

    def restore(self, task_id: str) -> None:
        """Undo `discard`. The name gets a number if another task has it. Raises: TaskError if the task was purged."""
        with self._database.transaction() as db:
            row = db.execute("SELECT * FROM tasks WHERE id = ?", (task_id,)).fetchone()
            if row is None:
                raise TaskError("Task {id} was deleted permanently: add its data again.", id=quote_value(task_id))
            if row["discarded_at"] is not None:
                db.execute(
                    "UPDATE tasks SET name = ?, changed_at = ?, discarded_at = NULL WHERE id = ?",
                    (self._free_name(row["name"]), time.time(), task_id),
                )

    def purge_discarded(self, older_than_s: float = UNDO_S) -> None:
        """Delete tasks discarded more than `older_than_s` seconds ago, and files without a task.

        Pages call this on every rerun. It ignores failed deletions and retries them on the next call.
        """
        limit = time.time() - older_than_s
        with suppress(TaskError, StoreError):
            if not self._tasks("discarded_at <= ?", limit) and not self._leftovers():
                return
            with self._database.transaction() as db:
                for task in self._tasks("discarded_at <= ?", limit):
                    self._free(db, task.id)
                for path in self._leftovers():
                    with suppress(OSError):  # the next call tries again
                        path.unlink(missing_ok=True)

    def _leftovers(self) -> list[Path]:
        """Return the files that interrupted additions left: partial files, and rows without a task."""
        limit_ns = (time.time() - LEFTOVER_S) * 1e9
        paths = [*self.rows_folder.glob(f"{OWN_TASK}*.parquet"), *self.rows_folder.glob(".*.partial")]
        old = [path for path in paths if 0 < file_stamp(path)[0] < limit_ns]
        known = {task.id for task in self._tasks("true")}
        return [path for path in old if path.stem not in known]

    def _free(self, db: sqlite3.Connection, task_id: str) -> None:
        """Delete a task's rows, then its metadata, so that an interrupted deletion can be repeated."""
        try:
            self._file(task_id).unlink(missing_ok=True)
        except OSError as error:
            raise TaskError("Task {id} cannot be deleted ({reason}).", id=task_id, reason=one_line(error)) from None
        db.execute("DELETE FROM tasks WHERE id = ?", (task_id,))

    def _free_name(self, name: str) -> str:
        taken = {task.name for task in self.tasks()}
        suffixes = ("", *(f" ({number})" for number in range(2, len(taken) + 2)))
        return next(free for end in suffixes if (free := name[: NAME_CHARS - len(end)] + end) not in taken)

    @cached_property
    def _database(self) -> Database:
        return Database(self.folder)

    def _tasks(self, condition: str, *values: object) -> list[LibraryTask]:
        if not (self.folder / DATABASE).exists() and not self.rows_folder.exists():
            return []
        rows = self._database.all(f"SELECT * FROM tasks WHERE {condition}", values)
        return [
            build_record(
                LibraryTask,
                row,
                pairs=bool(row["pairs"]),
                classes=json.loads(row["classes"]),
                splits=json.loads(row["splits"]),
            )
            for row in rows
        ]

    def _file(self, task_id: str) -> Path:
        """Return the file of a task's rows. The id must come from the database or from a hash, never from a user."""
        assert TASK_ID.fullmatch(task_id)
        return self.rows_folder / f"{task_id}.parquet"


@lru_cache(maxsize=4)
def _rows_of(path: Path, stamp: tuple[int, int]) -> Rows:
    """Read and cache rows. Their content never changes, but `stamp` changes when a damaged file is replaced."""
    return read_rows_file(path)[0]


def task_id_of(rows: Rows) -> str:
    return OWN_TASK + rows.content_hash[:16]
