"""A job as it is now, read off its files and its process by anybody who looks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.store.liveness import is_alive
from core.workers.job_files import CANCEL, ENDED, ID, JOB, STATE, job_folder, process_of, read_json, written_at
from core.workers.warm_group import LOADING, WarmGroup

Status = Literal["running", "done", "failed", "cancelled", "interrupted"]

# A job whose process nobody has named yet is believed to be starting for this long.
STARTING_S = 1.0
MESSAGES = {
    "cancelled": "Cancelled.",
    "interrupted": "The job's process ended before it was done: start it again.",
}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it is now.

    Attributes:
        done, total: how far it is, in what the job counts (rows); total is None while nobody knows.
        message: what it does, or one sentence on why it failed.
        result: what it gave, empty until it is done.
        created_at: seconds since the epoch.
    """

    id: str
    kind: str
    label: str
    request: dict[str, Any]
    status: Status
    done: int = 0
    total: int | None = None
    message: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0

    @property
    def active(self) -> bool:
        return self.status == "running"


def read_jobs(store_folder: Path) -> list[JobRecord]:
    """Every job that was not dismissed, the newest first."""
    try:
        names = [path.name for path in (store_folder / "jobs").iterdir()]
    except FileNotFoundError:
        return []
    found = [record for name in names if (record := read_job(store_folder, name)) is not None]
    return sorted(found, key=lambda record: (record.created_at, record.id), reverse=True)


def read_job(store_folder: Path, job_id: str) -> JobRecord | None:
    """One job; None where there is none with that id."""
    if not ID.match(job_id):
        return None
    folder = job_folder(store_folder, job_id)
    job = read_json(folder / JOB) or {}
    if not {"kind", "label", "request", "created_at"} <= job.keys():
        return None
    state = read_json(folder / STATE) or {}
    waiting, at_work = "", False
    if state.get("status") not in ENDED:
        # A job leaves the line once its process is named, and a process ends once the state is written. Asked in this
        # order, a job that goes on meanwhile is never taken for lost.
        waiting = _waiting(store_folder, job)
        at_work = _is_at_work(folder, job["created_at"])
        state = read_json(folder / STATE) or {}
    status = _status(folder, state, bool(waiting) or at_work)
    return JobRecord(
        id=job_id,
        kind=job["kind"],
        label=job["label"],
        request=job["request"],
        status=status,
        done=state.get("done", 0),
        total=state.get("total"),
        message=MESSAGES.get(status) or waiting or state.get("message", "starting"),
        result=state.get("result", {}),
        created_at=job["created_at"],
    )


def ticket_of(store_folder: Path, job_id: str) -> tuple[WarmGroup, str] | None:
    """The group whose process carries a job out, and the job's place in its line; None for one with its own process."""
    job = read_json(job_folder(store_folder, job_id) / JOB) or {}
    return (WarmGroup(store_folder, job["group"]), job["ticket"]) if "ticket" in job else None


def _status(folder: Path, state: dict[str, Any], active: bool) -> Status:
    if state.get("status") in ENDED:
        return state["status"]
    if active:
        return "running"
    return "cancelled" if (folder / CANCEL).exists() else "interrupted"


def _is_at_work(folder: Path, created_at: float) -> bool:
    process = process_of(folder)
    if process is None:
        return time.time() - created_at < STARTING_S
    return is_alive(process, written_at(folder))


def _waiting(store_folder: Path, job: dict[str, Any]) -> str:
    """Why a job of a warm group has not begun; empty when it has, or is none of those."""
    if "ticket" not in job:
        return ""
    group = WarmGroup(store_folder, job["group"])
    line = group.waiting()
    if job["ticket"] not in line:
        return ""
    process = group.process()
    if process is not None and process.doing == LOADING:
        return "loading what such jobs need; the next ones find it loaded"
    before = line.index(job["ticket"]) + (process is not None and bool(process.doing))
    return f"waiting for its turn, {before} before it" if before else "starting"
