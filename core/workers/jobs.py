"""The interface for starting, watching and cancelling jobs."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from core.errors import ConfigError, EngineError, StoreError, quote_value
from core.messages import Text
from core.store.database import DATABASE
from core.store.job_table import JobRecord, JobTable
from core.store.liveness import is_alive, liveness_of, to_json
from core.store.records import Status
from core.store.work import Claim
from core.workers import job_kinds as kinds
from core.workers import processes
from core.workers.processes import GRACE_S, KEEPING_GRACE_S
from core.workers.warm import ensure_running

# Starts a process. Its arguments are the folder and the job's id, or those of `warm.serve` after --warm.
COMMAND = (sys.executable, "-m", "core.workers")


class Jobs:
    """The jobs of a store's folder. Any number of processes may use it.

    Starting, reading and cancelling jobs also restarts a warm process that died while work was waiting.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()

    def start(self, kind: str, request: Mapping[str, Any], label: Text, owner: str | None = None) -> str:
        """Start a job in a new process, or queue it for a warm one, and return at once.

        Args:
            owner: the visitor who starts the job, on a shared server.
        Returns: the job's id, or the id of an active job with the same request.
        Raises: ConfigError for an unknown kind; EngineError if no process can be started, or too many jobs of the owner
            are active.
        """
        if kind not in kinds.KINDS:
            raise ConfigError("job", kind, "choose {names}.", names=tuple(kinds.KINDS))
        asked = json.loads(json.dumps(dict(request)))  # normalised as stored, for comparison
        with self._plain_errors(), self._table.transaction():
            same = self._same(kind, asked, owner)
            if same is not None:
                return same
            line = kinds.WARM.get(kind)
            job_id = self._table.add(kind, asked, label, line, owner)
            try:
                if line is not None:
                    self._ensure_running(line)
                else:
                    command = [*COMMAND, str(self.folder), job_id]
                    worker = processes.spawn(command, self._table.log_path(job_id), {})
                    self._table.hand_over(Claim(job_id, 1, 0), worker)
            except OSError:
                shutil.rmtree(self._table.job_folder(job_id), ignore_errors=True)
                raise
            return job_id

    def warm_up(self, line: str) -> None:
        """Start the warm process of a queue unless it is running, and return at once.

        Raises: EngineError if no process can be started.
        """
        with self._plain_errors():
            self._ensure_running(line)

    def jobs(self) -> list[JobRecord]:
        """Return every job that was not dismissed, newest first."""
        if not (self.folder / DATABASE).exists():
            return []
        self._revive()
        return self._table.jobs()

    def job(self, job_id: str) -> JobRecord:
        """Return one job. Raises: EngineError for an unknown id."""
        self._revive()
        record = self._table.job(job_id)
        if record is None:
            raise EngineError("There is no job {id}: it may have been dismissed.", id=quote_value(job_id))
        return record

    def log(self, job_id: str) -> str:
        """Return the log of a job. Raises: EngineError for an unknown id."""
        path = self._table.log_path(self.job(job_id).id)
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def cancel(self, job_id: str) -> JobRecord:
        """End a job and its child processes, delete its temporary files, and return its final record.

        A job that finishes first stays finished, and a job that is storing its result gets time to complete. A warm
        process is killed only if its job does not respond to the request; another one takes over the waiting jobs.

        Raises: EngineError for an unknown id.
        """
        asked = self.job(job_id)
        if not asked.active:
            return asked
        self._table.ask_to_end(job_id)
        processes.wait_for(
            lambda: (now := self._table.job(job_id)) is None or not now.active, lambda: self._grace_s(job_id)
        )
        # In a transaction, so that a warm process cannot claim another job, which would be killed instead.
        with self._table.transaction():
            now = asked if asked.line is None else self._table.job(job_id)  # the end of a job clears its worker
            worker = None if now is None else now.worker
            if worker is not None and is_alive(worker, None):
                processes.kill_group(worker.pid)
        if worker is not None:
            processes.wait_for(lambda: not is_alive(worker, None), lambda: GRACE_S)
        self._table.end(job_id, Status.STOPPED)
        shutil.rmtree(self._table.work_folder(job_id), ignore_errors=True)
        return self.job(job_id)

    def dismiss(self, job_id: str) -> None:
        """Delete a job that has ended. Raises: EngineError if it is active or unknown."""
        if self.job(job_id).active:
            raise EngineError("Job {id} is still running: cancel it first.", id=quote_value(job_id))
        self._table.forget([job_id])

    @cached_property
    def _table(self) -> JobTable:
        return JobTable(self.folder)

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, StoreError) as error:
            cause = str(error) if isinstance(error, StoreError) else error.strerror or error
            raise EngineError(
                "No job could be started ({cause}): check that {folder} can be written, and try again.",
                cause=cause,
                folder=self.folder,
            ) from None

    def _same(self, kind: str, request: dict[str, Any], owner: str | None) -> str | None:
        """Return the id of an active job with the same request, or None; delete expired jobs.

        Raises: EngineError if too many jobs of the kind and owner are active.
        """
        found, now = self._table.jobs(), time.time()
        self._table.forget(
            [
                record.id
                for record in found
                if not record.active
                and now - record.updated_at > kinds.LIFETIME_S.get(record.kind, kinds.OTHER_LIFETIME_S)
            ]
        )
        active = [record for record in found if record.active and record.kind == kind]
        same = next((record.id for record in active if record.request == request), None)
        own = sum(record.owner == owner for record in active)
        if same is None and own >= (kinds.MAX_ACTIVE if owner is None else kinds.VISITOR_ACTIVE):
            raise EngineError(
                "{count} such jobs are running or queued: wait for some to end, or cancel them.", count=own
            )
        return same

    def _ensure_running(self, line: str) -> None:
        command = [*COMMAND, "--warm", str(self.folder), line, str(to_json(liveness_of()))]
        ensure_running(self._table, line, command)

    def _revive(self) -> None:
        for line in sorted({*kinds.WARM.values(), *kinds.SERVERS}):
            # The next call tries again. Until then the job is still waiting.
            with contextlib.suppress(OSError):
                if self._table.find_pending_ids(line):
                    self._ensure_running(line)

    def _grace_s(self, job_id: str) -> float:
        record = self._table.job(job_id)
        is_storing_result = record is not None and bool(record.total) and record.done == record.total
        return KEEPING_GRACE_S if is_storing_result else GRACE_S
