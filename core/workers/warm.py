"""A warm process: it has imported what its group needs, and carries out the group's jobs one after the other, or forks
a process for each of them.

It ends when nobody has asked for IDLE_EXIT_S, when the store's folder goes away, and when the code was edited: what it
remembers is then not what is written, and a new process takes the jobs that wait.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Never

from core.errors import StoreError
from core.store.database import DATABASE
from core.store.job_table import LOADING, NOTHING, JobRecord, JobTable, WarmProcess
from core.store.liveness import liveness_of
from core.store.records import Liveness
from core.workers import job_kinds as kinds
from core.workers.code_stamp import code_stamp
from core.workers.job_worker import carry_out
from core.workers.processes import lower_priority, spawn
from core.workers.warm_start import ensure_running, environment_of

IDLE_EXIT_S = 30 * 60
# How often it looks for a job in line, and whether its code is still that on disk.
POLL_S = 0.03
CODE_POLL_S = 2.0


def serve(store_folder: Path, group: str) -> int:
    """Carry out a group's jobs until there is a reason to leave. Returns: exit status."""
    if not (store_folder / DATABASE).exists():
        return 0  # the store went away before this process began
    table = JobTable(store_folder)
    try:
        _server_class(group)(table, group).serve()
    except (OSError, StoreError):
        if table.exists():
            raise
        # The store's folder went away, and takes this process with it.
    return 0


def _server_class(group: str) -> type[WarmServer]:
    if group not in kinds.SERVERS:
        return WarmServer
    module, _, name = kinds.SERVERS[group].partition(":")
    found: type[WarmServer] = getattr(importlib.import_module(module), name)
    return found


class WarmServer:
    """This process, as the one that serves a group's line."""

    def __init__(self, table: JobTable, group: str) -> None:
        self._table, self._group = table, group
        self._me = liveness_of()
        self._code = code_stamp()
        self._looked_at = self._used_at = time.monotonic()

    def serve(self) -> None:
        """Carry out jobs until there is a reason to leave."""
        if self._is_registered():
            self._settle()
            self._load()
            while self._turn():
                time.sleep(POLL_S)

    def _settle(self) -> None:
        """Arrange this process for what it will do."""
        if self._group in kinds.FORKING:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked processes are nobody's to wait for
        else:
            lower_priority()

    def _is_registered(self) -> bool:
        """Whether this is the process of the group; another one may have been quicker."""
        with self._table.transaction():
            named = self._table.warm_process(self._group)
            if named is not None and named.worker != self._me and named.alive:
                return False
            failed = named.failed_starts if named is not None and named.worker == self._me else 0
            self._table.name_warm_process(self._group, WarmProcess(self._me, LOADING, failed))
        return True

    def _load(self) -> None:
        for name in kinds.PRELOADED.get(self._group, ()):
            try:
                importlib.import_module(name)
            except Exception:
                # The job that needs it meets the same error, and says so to whoever asked for it.
                traceback.print_exc()
        self._record(NOTHING)
        self._used_at = time.monotonic()

    def _turn(self) -> bool:
        """Look once, and work where there is something to do. Returns: whether to look again."""
        if not self._table.exists():
            return False
        if self._has_work():
            with self._table.transaction():
                if not self._is_current():
                    self._hand_over()
                    return False
                job_id = self._table.claim_next(self._group, self._me)
                if job_id is not None:
                    self._record(job_id)
            if job_id is not None:
                self._carry_out(job_id)
            return True
        return not self._should_exit() or not self._left()

    def _should_exit(self) -> bool:
        now = time.monotonic()
        if now - self._used_at >= IDLE_EXIT_S:
            return True
        if now - self._looked_at < CODE_POLL_S:
            return False
        self._looked_at = now
        return not self._is_current()

    def _is_current(self) -> bool:
        return self._is_named() and code_stamp() == self._code

    def _is_named(self) -> bool:
        named = self._table.warm_process(self._group)
        return named is not None and named.worker == self._me

    def _has_work(self) -> bool:
        """Whether something waits for this process."""
        return bool(self._table.waiting(self._group))

    def _left(self) -> bool:
        """Whether nobody put a job in line until now, and nobody will count on this process from here on."""
        with self._table.transaction():
            if self._has_work():
                return False
            self._resign()
        return True

    def _hand_over(self) -> None:
        """To a process that knows the code as it is now. In a transaction."""
        self._resign()
        ensure_running(self._table, self._group, self._successor)

    def _resign(self) -> None:
        if self._is_named():
            self._table.name_warm_process(self._group, None)

    def _successor(self) -> Liveness | None:
        log_path, environment = self._table.warm_log_path(self._group), environment_of(self._group)
        return spawn([sys.executable, *sys.orig_argv[1:]], log_path, environment)

    def _carry_out(self, job_id: str) -> None:
        if self._group in kinds.FORKING:
            self._fork(job_id)
        else:
            self._work(job_id)
        self._record(NOTHING)
        self._used_at = time.monotonic()

    def _fork(self, job_id: str) -> None:
        job = self._table.job(job_id)
        assert job is not None
        # SQLite's locks do not survive a fork: the child must not inherit a connection.
        self._table.close()
        if os.fork() == 0:
            become_worker(job, self._table.folder)
        self._table.forget([job_id])

    def _work(self, job_id: str) -> None:
        tempfile.tempdir = str(self._table.work_folder(job_id))
        # An error that reaches this place ends the process: a job whose end cannot be written must not read as running.
        with output_to(self._table.log_path(job_id)):
            carry_out(self._table, job_id)
        tempfile.tempdir = None

    def _record(self, doing: str) -> None:
        self._table.name_warm_process(self._group, WarmProcess(self._me, doing))


def become_worker(job: JobRecord, store_folder: Path) -> Never:
    """In the forked child: a session of its own, then the work, which reports for itself."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status = kinds.work_of(job.kind)(job.request, store_folder, lambda *_: None)["status"]
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """What this process and its children print meanwhile goes to a file, also what no Python prints."""
    _flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    log = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    for number, _ in kept:
        os.dup2(log, number)
    os.close(log)
    try:
        yield
    finally:
        _flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
