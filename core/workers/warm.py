"""Warm processes. Each has imported the libraries of its queue, and executes work or forks a process for it.

A warm process exits when it is idle and its starter (a server or a command) has ended, after IDLE_EXIT_S without work,
when the store's folder is deleted, or when the code has changed. In the last case a new process takes over the waiting
work.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Never

import psutil

from core.errors import StoreError
from core.messages import Message
from core.settings import PREFIX
from core.store.database import DATABASE
from core.store.job_table import JobTable
from core.store.liveness import is_alive, liveness_of
from core.store.records import Liveness, Status
from core.store.work import LOADING, NOTHING, RUNS, Claim, WarmProcess
from core.workers import job_kinds as kinds
from core.workers import processes
from core.workers.job_worker import carry_out
from core.workers.machine import visible_gpus
from core.workers.processes import ONE_THREAD, START_FAILURE, code_stamp, flush, lower_priority, output_to

IDLE_EXIT_S = 30 * 60
# Intervals between checks for work, and between checks of the code on disk and of the starter.
POLL_S = 0.03
CODE_POLL_S = 2.0
# Limit on consecutive processes that die while loading, as for lack of memory. The next one would die too.
MAX_FAILED_STARTS = 3


def serve(store_folder: Path, line: str, starter: Liveness | None) -> int:
    """Serve a queue until there is a reason to exit.

    Args:
        starter: the process with which this one ends, once it is idle.
    Returns: exit status.
    """
    if not (store_folder / DATABASE).exists():
        return 0  # the store was deleted before this process began
    table, server = JobTable(store_folder), WarmServer
    if line in kinds.SERVERS:
        server = resolve_name(kinds.SERVERS[line])
    else:
        lower_priority()  # queued runs depend on the other servers
    try:
        server(table, line, starter).serve()
    except (OSError, StoreError):
        if table.exists():
            raise
        # The store was deleted, so this process ends too.
    return 0


def ensure_running(
    table: JobTable,
    line: str,
    command: Sequence[str],
    *,
    leaving: Liveness | None = None,
) -> None:
    """Start the warm process of a queue unless one is alive.

    Args:
        command: of the process.
        leaving: a process that is alive but accepts no more work.
    Raises: OSError if no process can be started.
    """
    if _is_served(table, line, leaving):
        return  # pages call this on every rerun, and a read blocks no writer
    with table.transaction():
        if _is_served(table, line, leaving):
            return
        last = table.warm_process(line)
        failed = last.failed_starts + 1 if last is not None and last.doing == LOADING else 0
        if failed >= MAX_FAILED_STARTS:
            _give_up(table, line, failed)
            return
        log_path = table.warm_log_path(line)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_path.write_bytes(b"")
        worker = processes.spawn(command, log_path, visible_gpus() if line == RUNS else ONE_THREAD)
        if worker is not None:
            table.name_warm_process(line, WarmProcess(worker, LOADING, failed))


def _is_served(table: JobTable, line: str, leaving: Liveness | None) -> bool:
    """Return True if the registered process is alive, even while it loads."""
    process = table.warm_process(line)
    return process is not None and process.alive and process.worker != leaving


def _give_up(table: JobTable, line: str, times: int) -> None:
    """End every waiting job as failed, with the warm process's log as its log. Requeue runs for another process."""
    message = Message(
        "The process for such jobs ended {times} times while loading its libraries: close programs that need "
        "memory, and start the job again. Its log has the details.",
        times=times,
    )
    for work_id in table.find_pending_ids(line):
        if line == RUNS:
            table.queue_again(work_id, 0.0)
        else:
            shutil.copyfile(table.warm_log_path(line), table.log_path(work_id))
            table.end(work_id, Status.FAILED, message)
    table.name_warm_process(line, None)


class WarmServer:
    """Server of a queue in this process.

    Attributes:
        claims: True if it claims the work of its queue; False if the engine does.
    """

    claims = True

    def __init__(self, table: JobTable, line: str, starter: Liveness | None = None) -> None:
        self._table, self._line, self._starter = table, line, starter
        self._me = liveness_of()
        self._code = code_stamp()
        self._looked_at = self._used_at = time.monotonic()

    def serve(self) -> None:
        """Execute work until there is a reason to exit, such as another live process that was registered first."""
        with self._table.transaction():
            named = self._table.warm_process(self._line)
            is_me = named is not None and named.worker == self._me
            if named is not None and not is_me and named.alive:
                return
            failed = named.failed_starts if named is not None and is_me else 0
            self._table.name_warm_process(self._line, WarmProcess(self._me, LOADING, failed))
        self._load()
        self._used_at = time.monotonic()
        while self._turn():
            time.sleep(POLL_S)

    def _load(self) -> None:
        for name in kinds.PRELOADED.get(self._line, ()):
            try:
                importlib.import_module(name)
            except Exception:
                # The job that needs the module fails with the same error, and reports it to the user.
                traceback.print_exc()
        self._record(NOTHING)

    def _turn(self) -> bool:
        """Execute the next work, if any. Returns: False if the process should exit."""
        if not self._table.exists():
            return False
        if self._has_work():
            with self._table.transaction():
                if not self._is_current():
                    self._hand_over()
                    return False
                if self.claims:
                    self._table.claim_next(worker=self._me, line=self._line)
                claimed = self._table.find_held_work(self._line, self._me)
                if claimed is not None:
                    self._record(claimed[0].id)
            if claimed is not None:
                self._carry_out(*claimed)
                self._record(NOTHING)
                self._used_at = time.monotonic()
            return True
        return not self._may_exit()

    def _may_exit(self) -> bool:
        """Deregister an idle or outdated process unless new work has arrived. Returns: True if it may exit."""
        now = time.monotonic()
        if now - self._used_at < IDLE_EXIT_S:
            if now - self._looked_at < CODE_POLL_S:
                return False
            self._looked_at = now
            if self._is_current() and (self._starter is None or is_alive(self._starter, None)):
                return False
        with self._table.transaction():
            if self._has_work():
                return False
            if self._is_named():
                self._table.name_warm_process(self._line, None)
        return True

    def _is_current(self) -> bool:
        return self._is_named() and code_stamp() == self._code

    def _is_named(self) -> bool:
        named = self._table.warm_process(self._line)
        return named is not None and named.worker == self._me

    def _has_work(self) -> bool:
        """Return True if work waits for this process."""
        return bool(self._table.find_pending_ids(self._line))

    def _hand_over(self) -> None:
        """Start a process with the current code to take over, unless another process has deregistered this one.

        Must be called in a transaction.
        """
        if not self._is_named():
            return
        ensure_running(self._table, self._line, [sys.executable, *sys.orig_argv[1:]], leaving=self._me)

    def _carry_out(self, claim: Claim, request: dict[str, Any]) -> None:
        tempfile.tempdir = str(self._table.work_folder(claim.id))
        # An error here ends the process, so that a job whose end cannot be recorded does not show as running.
        with output_to(self._table.log_path(claim.id)):
            carry_out(self._table, claim)
        tempfile.tempdir = None

    def _record(self, doing: str) -> None:
        self._table.name_warm_process(self._line, WarmProcess(self._me, doing))


class RunStarter(WarmServer):
    """Forks a process for every run claimed for it, because runs take long and may execute concurrently.

    It executes no tensor operation and uses no GPU: neither thread pools nor CUDA survive a fork.
    """

    claims = False  # the engine claims runs, because it knows which slots are free

    def serve(self) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps forked processes
        super().serve()

    def _carry_out(self, claim: Claim, request: dict[str, Any]) -> None:
        # SQLite's locks do not survive a fork: the child must not inherit a connection.
        self._table.close()
        try:
            child = os.fork()
        except OSError as error:
            self._table.end(claim.id, Status.FAILED, START_FAILURE.fill(reason=error.strerror))
            return
        if child == 0:
            self._become_worker(claim, request)
        worker = None
        with contextlib.suppress(psutil.NoSuchProcess):
            worker = liveness_of(child)
        self._table.hand_over(claim, worker)

    def _become_worker(self, claim: Claim, settings: dict[str, str]) -> Never:
        """Execute a run in the forked child, in a new session, with the settings of the process that claimed it."""
        status = 1
        try:
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for name in [name for name in os.environ if name.startswith(PREFIX)]:
                del os.environ[name]
            os.environ.update(settings)
            # If the parent died after the fork, its successor may have forked another child for this claim.
            if self._table.register(claim, liveness_of(), holder=self._me):
                self._table.close()
                run_worker = importlib.import_module("core.workers.run_worker")
                status = run_worker.work_in_log(self._table.folder, claim)
        except BaseException:
            traceback.print_exc()
        finally:
            flush()
            os._exit(status)
