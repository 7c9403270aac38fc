"""What is said of tasks as the version before 0.1.0 kept it, in JSON files: read once, by the migration."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, get_args

from core.errors import TaskError
from core.store.task_entry import TASK_ID, entry_of, task_id_of
from core.tasks.rows import Kind, read_rows_file

TEXTS, NUMBERS, OBJECTS = ("name", "source"), ("rows", "created_at"), ("classes", "splits")


def read_task_files(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table of tasks for what lies in `tasks/`.

    A damaged entry is made again from the task's rows, under its id; where these are damaged too, nothing can be had.
    """
    ids = sorted(path.stem for path in folder.glob("own-*.json") if TASK_ID.fullmatch(path.stem))
    return [row for task_id in ids if (row := _row(folder, task_id)) is not None]


def _row(folder: Path, task_id: str) -> dict[str, Any] | None:
    try:
        return _checked(json.loads((folder / f"{task_id}.json").read_text(encoding="utf-8")), task_id)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return _from_rows(folder / f"{task_id}.parquet")


def _checked(entry: Any, task_id: str) -> dict[str, Any]:
    """Raises: ValueError, KeyError or TypeError for what is no entry of this task."""
    fits = [isinstance(entry[name], str) for name in TEXTS]
    fits += [isinstance(entry[name], int | float) for name in NUMBERS]
    fits += [isinstance(entry[name], dict) for name in OBJECTS]
    discarded_at = entry.get("discarded_at")
    if not all(fits) or entry["id"] != task_id or entry["kind"] not in get_args(Kind):
        raise ValueError("no entry of this task")
    if not isinstance(discarded_at, int | float | None):
        raise ValueError("no time at which it was discarded")
    return {
        **{name: entry[name] for name in ("id", "kind", *TEXTS, *NUMBERS)},
        **{name: json.dumps(entry[name], ensure_ascii=False) for name in OBJECTS},
        "pairs": bool(entry["pairs"]),
        "changed_at": entry["created_at"],
        "discarded_at": discarded_at,
    }


def _from_rows(path: Path) -> dict[str, Any] | None:
    try:
        rows, _ = read_rows_file(path)
    except TaskError:
        return None
    return entry_of(rows, path.stem, "", time.time()) if task_id_of(rows) == path.stem else None
