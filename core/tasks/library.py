"""Tasks that people brought, from a file or from the Hub: kept by content, listed, renamed, deleted.

Each is two files in the library's folder: the rows, named by their hash and never changed, and what is said of them.
The rows are written first, so that a task that is listed has them.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from core.atomic import atomic_write
from core.errors import ConfigError, TaskError, shown
from core.tasks.rows import Kind, Rows, one_line, read_rows_file, write_rows

OWN = "own-"
TASK_ID = re.compile(rf"{OWN}[0-9a-f]{{16}}")
MAX_NAME_CHARS = 80
LOCK_TIMEOUT_S = 10.0
# Files that no task has are half of an addition for this long, and then what an interrupted one left.
LEFTOVER_S = 3600.0


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


ENTRY = TypeAdapter(LibraryTask)


class TaskLibrary:
    """The tasks in a folder, which comes into being with the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, rows: Rows, *, name: str, source: str) -> LibraryTask:
        """Keep rows; those that are here already keep the name that they have, as `find_rows` says beforehand.

        Whatever is damaged of a task with these rows is written again.

        Raises: ConfigError for a name that is empty or too long; TaskError when the folder cannot be written.
        """
        name = checked_name(name)
        task_id = OWN + rows.content_hash[:16]
        self._make_folder()
        write_rows(self._rows(task_id), rows, {})  # takes a while, so nobody waits for it
        with self._changing():
            if not self._rows(task_id).is_file():
                write_rows(self._rows(task_id), rows, {})  # they were purged in between
            task = self._entry(task_id)
            if task is None:
                task = _task_of(rows, self._free_name(name), source)
            elif task.discarded_at is not None:
                task = replace(task, name=self._free_name(name), source=source, discarded_at=None)
            self._write(task)
        return task

    def tasks(self) -> list[LibraryTask]:
        """All that were not discarded, newest first; `damaged` names the entries that cannot be read."""
        found = [task for task_id in self._ids() if (task := self._entry(task_id)) is not None]
        kept = [task for task in found if task.discarded_at is None]
        return sorted(kept, key=lambda task: task.created_at, reverse=True)

    def damaged(self) -> list[str]:
        """Ids of the entries that cannot be read: `task` says why, `discard` and `delete` remove them, `add` heals."""
        return [task_id for task_id in self._ids() if self._entry(task_id) is None and self._about(task_id).is_file()]

    def find_rows(self, rows: Rows) -> LibraryTask | None:
        """The task with exactly these rows, if there is one."""
        task = self._entry(OWN + rows.content_hash[:16])
        return task if task is not None and task.discarded_at is None else None

    def task(self, task_id: str) -> LibraryTask:
        """Raises: TaskError when there is no such task, or its entry is damaged."""
        if not self._has(task_id):
            raise _missing(task_id)
        task = self._read(task_id)
        if task.discarded_at is not None:
            raise _missing(task_id)
        return task

    def changed_at(self, task_id: str) -> float:
        """When what is said of a task changed last. Raises: TaskError when there is no such task."""
        self.task(task_id)
        try:
            return self._about(task_id).stat().st_mtime
        except OSError:
            raise _missing(task_id) from None

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
        rows = _rows_of(self._rows(task_id), _stamp(self._rows(task_id)))
        if OWN + rows.content_hash[:16] != task_id:
            raise TaskError(f"The rows of task {task_id} are damaged: delete it, or add its data again.")
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

        Runs keep their own rows, so none of them misses it. One whose entry is damaged goes at once.

        Raises: TaskError when there is no such task.
        """
        with self._changing():
            if task_id in self.damaged():
                self._free(task_id)
            else:
                self._write(replace(self.task(task_id), discarded_at=time.time()))

    def delete(self, task_id: str) -> None:
        """Delete one task for good, damaged or not. Raises: TaskError when there is no such task."""
        if not self._has(task_id):
            raise _missing(task_id)
        with self._changing():
            self._free(task_id)

    def restore(self, task_id: str) -> None:
        """Undo `discard`, under another name if a task has got its own. Raises: TaskError when the rows are gone."""
        gone = TaskError(f"Task {shown(task_id)} is deleted for good: add its data again.")
        if not self._has(task_id):
            raise gone
        with self._changing():
            if not self._has(task_id):
                raise gone
            task = self._read(task_id)
            if task.discarded_at is not None:
                self._write(replace(task, name=self._free_name(task.name), discarded_at=None))

    def purge_discarded(self, older_than_s: float) -> None:
        """Delete what was discarded longer ago than that, and files that no task has.

        Pages call it whenever they are drawn: it waits for nobody, and what cannot be deleted now is left for later.
        """
        limit = time.time() - older_than_s
        if not self._due(limit) and not self._leftovers():
            return
        with suppress(TaskError), self._changing(timeout_s=0.0):
            for task_id in self._due(limit):
                self._free(task_id)
            for path in self._leftovers():
                with suppress(OSError):  # it is left for later
                    path.unlink(missing_ok=True)

    def _due(self, limit: float) -> list[str]:
        tasks = [task for task_id in self._ids() if (task := self._entry(task_id)) is not None]
        return [task.id for task in tasks if task.discarded_at is not None and task.discarded_at <= limit]

    def _leftovers(self) -> list[Path]:
        """What an addition left that was ended in the middle: half-written files, and rows of no task."""
        rows = [path for path in self.folder.glob(f"{OWN}*.parquet") if not self._about(path.stem).is_file()]
        limit_ns = (time.time() - LEFTOVER_S) * 1e9
        return [path for path in (*rows, *self.folder.glob(".*.partial")) if 0 < _stamp(path)[0] < limit_ns]

    def _free(self, task_id: str) -> None:
        """The rows first: what is left of a task whose deletion was interrupted can be deleted again."""
        try:
            self._rows(task_id).unlink(missing_ok=True)
            self._about(task_id).unlink(missing_ok=True)
        except OSError as error:
            raise TaskError(f"Task {task_id} cannot be deleted ({one_line(error)}).") from None

    def _free_name(self, name: str) -> str:
        taken = {task.name for task in self.tasks()}
        number = 2
        free = name
        while free in taken:
            suffix = f" ({number})"
            free = name[: MAX_NAME_CHARS - len(suffix)] + suffix
            number += 1
        return free

    @contextmanager
    def _changing(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """One at a time, over all processes. Raises: TaskError when that cannot be had."""
        self._make_folder()
        lock = FileLock(self.folder / ".lock", timeout=timeout_s)
        try:
            lock.acquire()
        except Timeout:
            raise TaskError(
                f"The task folder {shown(str(self.folder))} is being changed by another process: try again."
            ) from None
        except OSError as error:
            raise self._cannot_be("written", error) from None
        try:
            yield
        finally:
            lock.release()

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot_be("made", error) from None

    def _cannot_be(self, what: str, error: OSError) -> TaskError:
        return TaskError(
            f"The task folder {shown(str(self.folder))} cannot be {what} ({one_line(error)}): "
            "make room and see that it may be written, or choose another with SCL_RUNS."
        )

    def _ids(self) -> list[str]:
        """Ids of all entries, whatever is in them."""
        return sorted(path.stem for path in self.folder.glob(f"{OWN}*.json") if TASK_ID.fullmatch(path.stem))

    def _has(self, task_id: str) -> bool:
        return TASK_ID.fullmatch(task_id) is not None and self._about(task_id).is_file()

    def _entry(self, task_id: str) -> LibraryTask | None:
        """What is said of a task, discarded or not; None where there is nothing, or nothing that can be read."""
        try:
            return self._read(task_id)
        except TaskError:
            return None

    def _about(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.json"

    def _rows(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.parquet"

    def _read(self, task_id: str) -> LibraryTask:
        try:
            task = ENTRY.validate_json(self._about(task_id).read_bytes())
            if task.id != task_id:
                raise ValueError(f"it is that of task {shown(task.id)}")
        except FileNotFoundError:
            raise _missing(task_id) from None
        except (OSError, ValueError) as error:
            why = shown(error.errors()[0]["msg"] if isinstance(error, ValidationError) else one_line(error))
            raise TaskError(f"Task {task_id} cannot be read ({why}): delete it, or add its data again.") from None
        return task

    def _write(self, task: LibraryTask) -> None:
        try:
            with atomic_write(self._about(task.id)) as partial:
                partial.write_text(json.dumps(asdict(task), ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise self._cannot_be("written", error) from None


def _task_of(rows: Rows, name: str, source: str) -> LibraryTask:
    return LibraryTask(
        id=OWN + rows.content_hash[:16],
        name=name,
        source=source,
        kind=rows.kind,
        pairs=rows.seconds is not None,
        rows=len(rows),
        classes=dict(Counter(rows.labels).most_common()) if rows.kind == "classes" else {},
        splits=dict(Counter[str](rows.splits or ())),
        created_at=time.time(),
    )


@lru_cache(maxsize=4)
def _rows_of(path: Path, stamp: tuple[int, int]) -> Rows:
    """Rows never change under their name, but a damaged file is mended under it."""
    return read_rows_file(path)[0]


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a file does; zeros where there is none."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


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
