"""The jobs of a store, as those see them who start, watch and cancel them."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from core.errors import ConfigError, EngineError, StoreError, shown
from core.messages import Text
from core.store.database import DATABASE
from core.store.job_table import JobRecord, JobTable
from core.store.liveness import is_alive
from core.store.records import Liveness, Status
from core.store.work import Claim
from core.workers import job_kinds as kinds
from core.workers import processes
from core.workers.processes import GRACE_S, KEEPING_GRACE_S
from core.workers.warm import ensure_running, environment_of

COMMAND = (sys.executable, "-m", "core.workers")


class Jobs:
    """The jobs of one store's folder. Any process may have one.

    Starting, reading and cancelling jobs also brings the warm process of a line back where it died while work waited.
    """

    def __init__(self, folder: str | Path, *, command: Sequence[str] = COMMAND) -> None:
        """`command` starts a process; the store's folder and the job's id, or --warm and a line, are added to it."""
        self.folder = Path(folder).resolve()
        self._command = tuple(command)

    def start(self, kind: str, request: Mapping[str, Any], label: Text) -> str:
        """Have a job done by a process of its own, or put it in the line of a warm one; returns at once.

        Returns: the job's id, or that of one that does the same already.
        Raises: ConfigError for an unknown kind, EngineError when no process can be started or too many wait.
        """
        kinds.check_kind(kind)
        asked = json.loads(json.dumps(dict(request)))  # as it will be read, so that it can be compared
        with self._plain_errors(), self._table.transaction():
            return self._same(kind, asked) or self._started(kind, asked, label)

    def warm_up(self, line: str) -> None:
        """Start a line's process ahead of need, unless it lives; returns at once.

        Raises: ConfigError for an unknown line, EngineError when no process can be started.
        """
        if line not in kinds.lines():
            raise ConfigError("line", line, "choose {names}.", names=tuple(kinds.lines()))
        with self._plain_errors():
            self._ensure_running(line)

    def jobs(self) -> list[JobRecord]:
        """Every job that was not dismissed, the newest first."""
        if not (self.folder / DATABASE).exists():
            return []
        self._revive()
        return self._table.jobs()

    def job(self, job_id: str) -> JobRecord:
        """One job. Raises: EngineError when there is none with that id."""
        self._revive()
        record = self._table.job(job_id)
        if record is None:
            raise EngineError("There is no job {id}: it may have been dismissed.", id=shown(job_id))
        return record

    def log(self, job_id: str) -> str:
        """What a job printed, for a person who looks for the cause of an error. Raises: EngineError."""
        path = self._table.log_path(self.job(job_id).id)
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def cancel(self, job_id: str) -> JobRecord:
        """End a job and the processes it started, and drop what it left half done; returns how the job ended.

        A job that was done before it could be ended stays done, and one that is keeping its result may take itself to
        the end. A warm process is only ended with a job that does not heed its progress, and others carry on with the
        jobs that wait. Raises: EngineError for an unknown id.
        """
        record = self.job(job_id)
        if not record.active:
            return record
        if record.line is None:
            if record.worker is not None:
                processes.end(record.worker, lambda: self._grace_s(job_id))
        else:
            self._end_warm(job_id)
        self._table.end(job_id, Status.STOPPED)
        shutil.rmtree(self._table.work_folder(job_id), ignore_errors=True)
        return self.job(job_id)

    def dismiss(self, job_id: str) -> None:
        """Forget a job that has ended. Raises: EngineError while it runs, or for an unknown id."""
        if self.job(job_id).active:
            raise EngineError("Job {id} is still running: cancel it first.", id=shown(job_id))
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

    def _same(self, kind: str, request: dict[str, Any]) -> str | None:
        """A job that does the same. Makes room, and raises: EngineError where there is none."""
        found, now = self._table.jobs(), time.time()
        ended = [record for record in found if not record.active]
        kept_s = {record.id: kinds.KEPT_S.get(record.kind, kinds.KEPT_OTHERS_S) for record in ended}
        self._table.forget([record.id for record in ended if now - record.updated_at > kept_s[record.id]])
        active = [record for record in found if record.active and record.kind == kind]
        same = next((record.id for record in active if record.request == request), None)
        if same is None and len(active) >= kinds.MAX_ACTIVE:
            raise EngineError(
                "{count} such jobs are at work or waiting: let some of them end, or cancel them.", count=len(active)
            )
        return same

    def _started(self, kind: str, request: dict[str, Any], label: Text) -> str:
        line = kinds.WARM.get(kind)
        job_id = self._table.add(kind, request, label, line)
        try:
            if line is not None:
                self._ensure_running(line)
            else:
                log_path = self._table.log_path(job_id)
                self._table.hand_over(Claim(job_id, 1, 0), self._spawn([str(self.folder), job_id], log_path, {}))
        except OSError:
            shutil.rmtree(self._table.job_folder(job_id), ignore_errors=True)
            raise
        return job_id

    def _spawn(self, arguments: Sequence[str], log_path: Path, environment: Mapping[str, str]) -> Liveness | None:
        return processes.spawn([*self._command, *arguments], log_path, environment)

    def _ensure_running(self, line: str) -> None:
        arguments, log_path = ["--warm", str(self.folder), line], self._table.warm_log_path(line)
        ensure_running(self._table, line, lambda: self._spawn(arguments, log_path, environment_of(line)))

    def _revive(self) -> None:
        for line in kinds.lines():
            # The next look tries again, and until then the job reads as waiting, which it is.
            with contextlib.suppress(OSError):
                if self._table.awaiting(line):
                    self._ensure_running(line)

    def _grace_s(self, job_id: str) -> float:
        record = self._table.job(job_id)
        return KEEPING_GRACE_S if record is not None and record.keeping else GRACE_S

    def _end_warm(self, job_id: str) -> None:
        """Have a job end itself; where it does not, end the process that it keeps."""
        self._table.ask_to_end(job_id)

        def is_over() -> bool:
            record = self._table.job(job_id)
            return record is None or not record.active

        if not processes.wait_for(is_over, lambda: self._grace_s(job_id)):
            # In a transaction, so that the process can take no other job, which would be ended in its place.
            with self._table.transaction():
                record = self._table.job(job_id)
                if record is None or not record.active or record.worker is None:
                    return
                processes.signal_group(record.worker.pid, processes.KILL)
            worker = record.worker
            processes.wait_for(lambda: not is_alive(worker, None), lambda: GRACE_S)
