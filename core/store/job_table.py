"""Jobs as rows: request, progress and result. `core.workers` executes them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.messages import Message, Text, load_text
from core.store.database import build_record
from core.store.liveness import from_json, observed_status, rows_of_work
from core.store.names import new_id
from core.store.records import Liveness, Status
from core.store.work import ACTIVE, LOADING, WorkTable

ONE_JOB = "SELECT * FROM work WHERE id = ? AND kind != 'run'"
BEGINS, AHEAD = Message("starting"), Message("queued, {count} ahead")
MESSAGES = {
    Status.STOPPED: Message("Cancelled."),
    Status.INTERRUPTED: Message("The job's process ended early: start the job again."),
}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Current state of a job.

    Attributes:
        done, total: progress in the job's unit, such as rows; total is None while unknown.
        message: the current activity, or the reason why the job failed, in one sentence.
        result: empty until the job has finished.
        created_at, updated_at: seconds since the epoch.
        line: the queue whose warm process executes it; None for a job with a separate process.
        worker: the process that executes it, alive or not.
        owner: the visitor who started it; None if unknown.
    """

    id: str
    kind: str
    label: Text
    request: dict[str, Any]
    status: Status
    done: int = 0
    total: int | None = None
    message: Text = ""
    result: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    updated_at: float = 0.0
    line: str | None = None
    worker: Liveness | None = None
    owner: str | None = None

    @property
    def active(self) -> bool:
        return not self.status.ended


class JobTable(WorkTable):
    """The jobs of a database. Each job has a folder with its log and its temporary files."""

    def job_folder(self, job_id: str) -> Path:
        return self.folder / "jobs" / job_id

    def work_folder(self, job_id: str) -> Path:
        """Return the folder of a job's temporary files, which is deleted when the job ends."""
        return self.job_folder(job_id) / "work"

    def log_path(self, job_id: str) -> Path:
        return self.job_folder(job_id) / "log.txt"

    def warm_log_path(self, line: str) -> Path:
        """Return the log file of a warm process, for output that belongs to none of its jobs."""
        return self.folder / "jobs" / f"{line}.log"

    def jobs(self) -> list[JobRecord]:
        """Return every job, newest first."""
        rows = rows_of_work(self, "SELECT * FROM work WHERE kind != 'run' ORDER BY number DESC")
        return [self._record(row) for row in rows]

    def job(self, job_id: str) -> JobRecord | None:
        """Return one job; None for an unknown id."""
        return next((self._record(row) for row in rows_of_work(self, ONE_JOB, (job_id,))), None)

    def is_wanted(self, job_id: str) -> bool:
        """Return True if the job is queued, starting or running, and was not cancelled."""
        wanted = (Status.QUEUED, Status.STARTING, Status.RUNNING)
        return any(row["status"] in wanted for row in self.all(ONE_JOB, (job_id,)))

    def _record(self, row: sqlite3.Row) -> JobRecord:
        status = observed_status(row)
        if status == Status.INTERRUPTED and row["status"] == Status.STOPPING:
            status = Status.STOPPED
        said = BEGINS if row["message"] is None else load_text(row["message"])
        message = self._waiting_message(row["line"], row["id"]) if status == Status.QUEUED else said
        return build_record(
            JobRecord,
            row,
            label=load_text(row["label"]),
            request=json.loads(row["request"]),
            status=status,
            message=MESSAGES.get(status, message),
            result=json.loads(row["result"]),
            updated_at=row["ended_at"] or row["heartbeat_at"] or row["created_at"],
            worker=from_json(row["worker"]),
        )

    def _waiting_message(self, line: str, job_id: str) -> Message:
        process, awaiting = self.warm_process(line), self.find_pending_ids(line)
        if process is not None and process.doing == LOADING:
            return Message("loading libraries")
        before = (awaiting.index(job_id) if job_id in awaiting else 0) + (process is not None and bool(process.doing))
        return AHEAD.fill(count=before) if before else BEGINS

    def add(
        self,
        kind: str,
        request: Mapping[str, Any],
        label: Text,
        line: str | None = None,
        owner: str | None = None,
    ) -> str:
        """Add a job and return its id.

        Args:
            line: the queue of a warm process; None for a job that gets a separate process.
            owner: the visitor who starts it, on a shared server.
        Raises: OSError if its folder cannot be created.
        """
        job_id = new_id()
        with self.transaction():
            self.work_folder(job_id).mkdir(parents=True)
            self.add_work(job_id, kind, line, label=label, request=request, owner=owner)
        return job_id

    def ask_to_end(self, job_id: str) -> None:
        """Ask a job to end itself; a queued job ends at once."""
        with self.transaction() as db:
            if any(row["status"] == Status.QUEUED for row in self.all(ONE_JOB, (job_id,))):
                self.end(job_id, Status.STOPPED)
            db.execute(f"UPDATE work SET status = 'stopping' WHERE id = ? AND status IN {ACTIVE}", (job_id,))

    def report(self, job_id: str, done: int, total: int | None, message: Text) -> None:
        """Record a job's progress."""
        self.write(
            f"UPDATE work SET done = ?, total = ?, message = ?, heartbeat_at = ? WHERE id = ? AND status IN {ACTIVE}",
            (done, total, message, time.time(), job_id),
        )

    def forget(self, job_ids: Sequence[str]) -> None:
        """Delete jobs and their folders."""
        # Folders first: a folder whose row is gone would never be deleted.
        for job_id in job_ids:
            shutil.rmtree(self.job_folder(job_id), ignore_errors=True)
        with self.transaction() as db:
            db.executemany("DELETE FROM work WHERE id = ?", [(job_id,) for job_id in job_ids])
