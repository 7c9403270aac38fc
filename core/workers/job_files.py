"""The files of a job's folder, written so that nobody reads half of one."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.atomic import atomic_write
from core.store.records import Liveness

ID = re.compile(r"[a-km-np-z2-9]{12}\Z")
ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
# Progress, or how the job ended.
STATE = "state.json"
# Which process has the job.
PROCESS = "process.json"
# What was asked.
JOB = "job.json"
# There while somebody wants a warm job to end.
CANCEL = "cancel"
ENDED = ("done", "failed", "cancelled")


def new_id() -> str:
    return "".join(secrets.choice(ID_LETTERS) for _ in range(12))


def job_folder(store_folder: Path, job_id: str) -> Path:
    return store_folder / "jobs" / job_id


def process_of(folder: Path) -> Liveness | None:
    """The process that has a job, alive or not."""
    try:
        return Liveness(**(read_json(folder / PROCESS) or {}))
    except TypeError:
        return None


def has_ended(folder: Path) -> bool:
    """Whether a job's state says how it ended."""
    return (read_json(folder / STATE) or {}).get("status") in ENDED


def is_keeping(folder: Path) -> bool:
    """Whether a job has done all that it counts, and is only keeping its result."""
    state = read_json(folder / STATE) or {}
    return bool(state.get("total")) and state.get("done") == state["total"]


def written_at(folder: Path) -> float | None:
    """When a job's state was last written, in seconds since the epoch; None before the first time."""
    try:
        return (folder / STATE).stat().st_mtime
    except OSError:
        return None


def read_json(path: Path) -> dict[str, Any] | None:
    """A file that `write_json` wrote; None where there is none, or no longer."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return given if isinstance(given, dict) else None


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Under a temporary name first."""
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
