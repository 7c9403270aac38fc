"""Jobs as rows: what was asked, who works on it, how far it is and how it ended, read and written by every process."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.messages import N_, Message, Text, load_text
from core.store.database import Database
from core.store.liveness import from_json, is_alive, to_json
from core.store.names import new_id
from core.store.records import Liveness

JobStatus = Literal["running", "done", "failed", "cancelled", "interrupted"]

# What the rows hold besides how a job ended.
WAITING, RUNNING = "waiting", "running"
ENDED = (N_("done"), N_("failed"), N_("cancelled"))
# What a warm process does that is no job.
LOADING, NOTHING = "loading", ""
MESSAGES = {
    "cancelled": Message("Cancelled."),
    "interrupted": Message("The job's process ended before it was done: start it again."),
}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it is now.

    Attributes:
        status: a job that waits for its turn is running, as the person sees it who asked for it, who reads
            `_(str(status))`.
        done, total: how far it is, in what the job counts (rows); total is None while nobody knows.
        message: what it does, or one sentence on why it failed.
        result: what it gave, empty until it is done.
        created_at, updated_at: seconds since the epoch.
        warm_group: whose warm process carries it out; None for one with a process of its own.
        worker: the process that has it, alive or not.
    """

    id: str
    kind: str
    label: Text
    request: dict[str, Any]
    status: JobStatus
    done: int = 0
    total: int | None = None
    message: Text = ""
    result: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    updated_at: float = 0.0
    warm_group: str | None = None
    worker: Liveness | None = None

    @property
    def active(self) -> bool:
        return self.status == "running"

    @property
    def keeping(self) -> bool:
        """Whether it has done all that it counts, and is only keeping its result."""
        return self.active and bool(self.total) and self.done == self.total


@dataclass(frozen=True, slots=True)
class WarmProcess:
    """The process that carries out the jobs of a group.

    Attributes:
        doing: LOADING, NOTHING, or the id of the job that it works on.
        failed_starts: how many before it ended while they were loading.
    """

    worker: Liveness
    doing: str
    failed_starts: int = 0

    @property
    def alive(self) -> bool:
        return is_alive(self.worker, None)


class JobTable(Database):
    """The jobs of a database, and per job a folder with its log and its temporary files."""

    def job_folder(self, job_id: str) -> Path:
        return self.folder / "jobs" / job_id

    def work_folder(self, job_id: str) -> Path:
        """Where a job's temporary files lie, until it ends."""
        return self.job_folder(job_id) / "work"

    def log_path(self, job_id: str) -> Path:
        return self.job_folder(job_id) / "log.txt"

    # What everybody reads

    def jobs(self) -> list[JobRecord]:
        """Every job, the newest first."""
        rows = self.all("SELECT * FROM jobs ORDER BY number DESC")
        return [record for row in rows if (record := self._record(row)) is not None]

    def job(self, job_id: str) -> JobRecord | None:
        """One job; None where there is none with that id."""
        row = self._row(job_id)
        return None if row is None else self._record(row)

    def is_wanted(self, job_id: str) -> bool:
        """Whether a job is still there, and nobody asked for its end."""
        return bool(self.all("SELECT 1 FROM jobs WHERE id = ? AND cancelled_at IS NULL", (job_id,)))

    def _row(self, job_id: str) -> sqlite3.Row | None:
        return next(iter(self.all("SELECT * FROM jobs WHERE id = ?", (job_id,))), None)

    def _record(self, row: sqlite3.Row) -> JobRecord | None:
        status, message, worker = row["status"], load_text(row["message"]), from_json(row["worker"])
        if status == WAITING:
            status, message = RUNNING, self._waiting_message(row["warm_group"], row["id"])
        elif status == RUNNING and (worker is None or not is_alive(worker, row["updated_at"])):
            # Its process may have ended since the row was read, once it had written how the job ended.
            again = self._row(row["id"])
            if again is None or again["status"] != RUNNING:
                return None if again is None else self._record(again)
            status = "cancelled" if row["cancelled_at"] is not None else "interrupted"
        return JobRecord(
            id=row["id"],
            kind=row["kind"],
            label=load_text(row["label"]),
            request=json.loads(row["request"]),
            status=status,
            done=row["done"],
            total=row["total"],
            message=MESSAGES.get(status, message),
            result=json.loads(row["result"]),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            warm_group=row["warm_group"],
            worker=worker,
        )

    def _waiting_message(self, group: str, job_id: str) -> Message:
        process, line = self.warm_process(group), self.waiting(group)
        if process is not None and process.doing == LOADING:
            return Message("loading what such jobs need; the next ones find it loaded")
        before = (line.index(job_id) if job_id in line else 0) + (process is not None and bool(process.doing))
        return waiting_words(before) if before else Message("starting")

    # What those write who ask for a job

    def add(self, kind: str, request: Mapping[str, Any], label: Text, warm_group: str | None = None) -> str:
        """Add a job, in line for a group's process or to be given one of its own; returns its id.

        Raises: OSError where its folder cannot be made.
        """
        job_id, now = new_id(), time.time()
        with self.transaction() as db:
            self.work_folder(job_id).mkdir(parents=True)
            db.execute(
                "INSERT INTO jobs (id, kind, label, request, warm_group, status, created_at, updated_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (job_id, kind, label, _json(request), warm_group, WAITING if warm_group else RUNNING, now, now),
            )
        return job_id

    def hand_over(self, job_id: str, worker: Liveness | None) -> None:
        """This process has a job now; None when it has ended already."""
        with self.transaction() as db:
            db.execute("UPDATE jobs SET worker = ? WHERE id = ?", (to_json(worker), job_id))

    def ask_to_end(self, job_id: str) -> None:
        """Have a job end itself; one that nobody has begun has ended with that."""
        now = time.time()
        with self.transaction() as db:
            db.execute("UPDATE jobs SET cancelled_at = ? WHERE id = ?", (now, job_id))
            db.execute(
                "UPDATE jobs SET status = 'cancelled', message = ?, updated_at = ? WHERE id = ? AND status = ?",
                (MESSAGES["cancelled"], now, job_id, WAITING),
            )

    def forget(self, job_ids: Sequence[str]) -> None:
        """Delete jobs and their folders."""
        # Folders first: nobody would come back for one whose row is gone.
        for job_id in job_ids:
            shutil.rmtree(self.job_folder(job_id), ignore_errors=True)
        with self.transaction() as db:
            db.executemany("DELETE FROM jobs WHERE id = ?", [(job_id,) for job_id in job_ids])

    # What those write who carry a job out

    def claim_next(self, group: str, worker: Liveness) -> str | None:
        """Take the job of a group that has waited longest, so that nobody else can; None when none waits."""
        with self.transaction() as db:
            oldest = "SELECT id FROM jobs WHERE warm_group = ? AND status = ? ORDER BY number LIMIT 1"
            row = db.execute(oldest, (group, WAITING)).fetchone()
            if row is None:
                return None
            db.execute(
                "UPDATE jobs SET status = ?, worker = ?, updated_at = ? WHERE id = ?",
                (RUNNING, to_json(worker), time.time(), row["id"]),
            )
            return str(row["id"])

    def register(self, job_id: str, worker: Liveness) -> JobRecord | None:
        """The job that this process carries out from here on; None when it has ended before."""
        with self.transaction() as db:
            begun = "UPDATE jobs SET worker = ? WHERE id = ? AND status = ?"
            taken = db.execute(begun, (to_json(worker), job_id, RUNNING)).rowcount
        return self.job(job_id) if taken else None

    def report(self, job_id: str, done: int, total: int | None, message: Text) -> None:
        """How far a job is."""
        with self.transaction() as db:
            db.execute(
                "UPDATE jobs SET done = ?, total = ?, message = ?, updated_at = ? WHERE id = ? AND status = ?",
                (done, total, message, time.time(), job_id, RUNNING),
            )

    def end(
        self, job_id: str, status: JobStatus, *, message: Text = "", result: Mapping[str, Any] | None = None
    ) -> None:
        """How a job ended; of one that has ended already, nothing is changed."""
        with self.transaction() as db:
            db.execute(
                "UPDATE jobs SET status = ?, message = ?, result = ?, updated_at = ? "
                "WHERE id = ? AND status NOT IN (?, ?, ?)",
                (status, message, _json(result or {}), time.time(), job_id, *ENDED),
            )

    # Warm processes

    def waiting(self, group: str) -> list[str]:
        """The ids of the jobs that wait in a group's line, the oldest first."""
        line = "SELECT id FROM jobs WHERE warm_group = ? AND status = ? ORDER BY number"
        return [row["id"] for row in self.all(line, (group, WAITING))]

    def waiting_groups(self) -> list[str]:
        """The groups in whose line a job waits."""
        groups = "SELECT DISTINCT warm_group FROM jobs WHERE status = ?"
        return [row["warm_group"] for row in self.all(groups, (WAITING,))]

    def warm_process(self, group: str) -> WarmProcess | None:
        """The process that was last named, alive or not; None when it left in good order."""
        for row in self.all("SELECT * FROM warm_processes WHERE warm_group = ?", (group,)):
            worker = from_json(row["worker"])
            assert worker is not None
            return WarmProcess(worker, row["doing"], row["failed_starts"])
        return None

    def name_warm_process(self, group: str, process: WarmProcess | None) -> None:
        with self.transaction() as db:
            db.execute("DELETE FROM warm_processes WHERE warm_group = ?", (group,))
            if process is not None:
                db.execute(
                    "INSERT INTO warm_processes (warm_group, worker, doing, failed_starts) VALUES (?, ?, ?, ?)",
                    (group, to_json(process.worker), process.doing, process.failed_starts),
                )

    def warm_log_path(self, group: str) -> Path:
        """What a group's process printed beside its jobs."""
        return self.folder / "jobs" / f"{group}.log"


def waiting_words(before: int) -> Message:
    """Args: before: how many have their turn first, 1 or more."""
    return Message("waiting for its turn, {count} before it", count=before)


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)
