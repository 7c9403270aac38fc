"""The jobs of a store, as those see them who start, watch and cancel them."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from core.errors import ConfigError, EngineError, shown
from core.store.liveness import is_alive
from core.store.records import Liveness
from core.workers import job_kinds as kinds
from core.workers import processes
from core.workers.job_files import (
    CANCEL,
    JOB,
    PROCESS,
    STATE,
    has_ended,
    is_keeping,
    job_folder,
    new_id,
    process_of,
    read_json,
    write_json,
    written_at,
)
from core.workers.job_records import JobRecord, read_job, read_jobs, ticket_of
from core.workers.processes import GRACE_S, KEEPING_GRACE_S
from core.workers.threads import ONE_THREAD
from core.workers.warm_group import WarmGroup, ensure_running, new_ticket

COMMAND = (sys.executable, "-m", "core.workers")
LOCK_TIMEOUT_S = 10.0


class Jobs:
    """The jobs of one store's folder. Any process may have one.

    Whoever starts, looks at or cancels a job of a warm group also brings the group's process back where it died while
    jobs waited for it.
    """

    def __init__(self, folder: str | Path, *, command: Sequence[str] = COMMAND) -> None:
        """`command` starts a process; the store's folder and the job's id, or --warm and a group, are added to it."""
        self.folder = Path(folder).resolve()
        self._command = tuple(command)

    def start(self, kind: str, request: Mapping[str, Any], label: str) -> str:
        """Have a job done by a process of its own, or put it in line for that of its warm group; returns at once.

        Returns: the job's id, or that of one that does the same already.
        Raises: ConfigError for an unknown kind, EngineError when no process can be started or too many wait.
        """
        kinds.check_kind(kind)
        asked = json.loads(json.dumps(dict(request)))  # as it will be read, so that it can be compared
        with self._plain_errors():
            (self.folder / "jobs").mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "jobs" / ".lock", timeout=LOCK_TIMEOUT_S):
                return self._same(kind, asked) or self._started(kind, asked, label)

    def warm_up(self, group: str) -> None:
        """Start a group's process ahead of need, unless it lives; returns at once.

        Raises: ConfigError for an unknown group, EngineError when no process can be started.
        """
        if group not in kinds.groups():
            raise ConfigError("group", group, f"choose {', '.join(kinds.groups())}.")
        with self._plain_errors():
            self._see_served(WarmGroup(self.folder, group))

    def jobs(self) -> list[JobRecord]:
        """Every job that was not dismissed, the newest first."""
        self._revive()
        return read_jobs(self.folder)

    def job(self, job_id: str) -> JobRecord:
        """One job. Raises: EngineError when there is none with that id."""
        self._revive()
        record = read_job(self.folder, job_id)
        if record is None:
            raise EngineError(f"There is no job {shown(job_id)}: it may have been dismissed.")
        return record

    def log(self, job_id: str) -> str:
        """What a job printed, for a person who looks for the cause of an error. Raises: EngineError."""
        self.job(job_id)
        try:
            return (job_folder(self.folder, job_id) / "log.txt").read_text(encoding="utf-8", errors="replace")
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
        folder = job_folder(self.folder, job_id)
        ticket = ticket_of(self.folder, job_id)
        if ticket is None:
            process = process_of(folder)
            if process is not None:
                processes.end(process, lambda: _grace_s(folder))
        else:
            _end_warm(folder, *ticket)
        if not has_ended(folder):
            last = read_json(folder / STATE) or {}
            write_json(folder / STATE, last | {"status": "cancelled", "message": "Cancelled.", "result": {}})
        shutil.rmtree(folder / "work", ignore_errors=True)
        return self.job(job_id)

    def dismiss(self, job_id: str) -> None:
        """Forget a job that has ended. Raises: EngineError while it runs, or for an unknown id."""
        if self.job(job_id).active:
            raise EngineError(f"Job {shown(job_id)} is still running: cancel it first.")
        shutil.rmtree(job_folder(self.folder, job_id), ignore_errors=True)

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EngineError(
                f"No job could be started ({error.strerror or error}): check that {self.folder} can be written, "
                "and try again."
            ) from None

    def _same(self, kind: str, request: dict[str, Any]) -> str | None:
        """A job that does the same. Makes room, and raises: EngineError where there is none."""
        found = read_jobs(self.folder)
        self._forget_old(found)
        active = [record for record in found if record.active and record.kind == kind]
        same = next((record.id for record in active if record.request == request), None)
        if same is None and len(active) >= kinds.MAX_ACTIVE:
            raise EngineError(f"{len(active)} such jobs are at work or waiting: let some of them end, or cancel them.")
        return same

    def _forget_old(self, found: Sequence[JobRecord]) -> None:
        for record in found:
            folder = job_folder(self.folder, record.id)
            ended_s = time.time() - (written_at(folder) or record.created_at)
            if not record.active and ended_s > kinds.KEPT_S.get(record.kind, kinds.KEPT_OTHERS_S):
                shutil.rmtree(folder, ignore_errors=True)

    def _started(self, kind: str, request: dict[str, Any], label: str) -> str:
        job_id = new_id()
        job = {"kind": kind, "label": label, "request": request, "created_at": time.time()}
        try:
            if kind in kinds.WARM:
                self._put_in_line(job_id, job, WarmGroup(self.folder, kinds.WARM[kind]))
            else:
                self._make(job_id, job)
                folder = job_folder(self.folder, job_id)
                process = self._spawn([str(self.folder), job_id], folder / "log.txt", {})
                if process is not None:
                    write_json(folder / PROCESS, asdict(process))
        except OSError:
            shutil.rmtree(job_folder(self.folder, job_id), ignore_errors=True)
            raise
        return job_id

    def _put_in_line(self, job_id: str, job: dict[str, Any], group: WarmGroup) -> None:
        ticket = new_ticket(job_id)
        group.make()
        self._make(job_id, job | {"group": group.name, "ticket": ticket})
        group.put(ticket)
        try:
            self._see_served(group)
        except OSError:
            group.take(ticket)
            raise

    def _make(self, job_id: str, job: dict[str, Any]) -> None:
        """The job's folder, complete before anybody sees it under its name."""
        made = self.folder / "jobs" / f".{job_id}"
        made.mkdir(parents=True)
        write_json(made / JOB, job)
        (made / "work").mkdir()
        made.rename(job_folder(self.folder, job_id))

    def _spawn(self, arguments: Sequence[str], log_path: Path, environment: Mapping[str, str]) -> Liveness | None:
        return processes.spawn([*self._command, *arguments], log_path, environment)

    def _see_served(self, group: WarmGroup) -> None:
        group.make()
        arguments = ["--warm", str(self.folder), group.name]
        with group.lock():
            ensure_running(group, lambda: self._spawn(arguments, group.log_path, ONE_THREAD))

    def _revive(self) -> None:
        for name in kinds.groups():
            group = WarmGroup(self.folder, name)
            if group.waiting() and not group.is_served():
                # The next look tries again, and until then the job reads as waiting, which it is.
                with contextlib.suppress(OSError):
                    self._see_served(group)


def _grace_s(folder: Path) -> float:
    return KEEPING_GRACE_S if is_keeping(folder) else GRACE_S


def _end_warm(folder: Path, group: WarmGroup, ticket: str) -> None:
    """Have a job end itself; where it does not, end the process that it keeps."""
    (folder / CANCEL).touch()
    if group.take(ticket):
        return  # nobody had begun it
    process = process_of(folder)
    if process is None:
        return

    def is_over() -> bool:
        return has_ended(folder) or not is_alive(process, None)

    if not processes.wait_for(is_over, lambda: _grace_s(folder)):
        # Under the lock, so that the process can take no other job, which would be ended in its place.
        with group.lock():
            if not is_over():
                processes.signal_group(process.pid, processes.KILL)
                processes.wait_for(lambda: not is_alive(process, None), lambda: GRACE_S)
