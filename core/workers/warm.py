"""A warm process: it has imported what its group needs, and carries out the group's jobs one after the other.

It ends when nobody has asked for IDLE_EXIT_S, when the store's folder goes away, and when the code was edited: what it
remembers is then not what is written, and a new process takes the jobs that wait.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from core.store.liveness import liveness_of
from core.store.records import Liveness
from core.workers import job_kinds as kinds
from core.workers.job_files import PROCESS, job_folder, write_json
from core.workers.job_worker import carry_out
from core.workers.processes import ROOT, lower_priority, spawn
from core.workers.threads import ONE_THREAD
from core.workers.warm_group import LOADING, NOTHING, WarmGroup, WarmProcess, ensure_running, job_of

IDLE_EXIT_S = 30 * 60
# How often it looks for a job in line, and whether its code is still that on disk.
POLL_S = 0.03
CODE_POLL_S = 2.0
CODE = ROOT / "core"


class WarmServer:
    """This process, as the one that serves a group's line."""

    def __init__(self, store_folder: Path, group: str) -> None:
        self._group = WarmGroup(store_folder, group)
        self._me = liveness_of()
        self._code = code_stamp()
        self._looked_at = self._used_at = time.monotonic()

    def serve(self) -> int:
        """Carry out jobs until there is a reason to leave. Returns: exit status."""
        try:
            if self._is_registered():
                lower_priority()
                self._load()
                while self._turn():
                    time.sleep(POLL_S)
        except FileNotFoundError:
            if self._group.exists():
                raise
            # The store's folder went away, and takes this process with it.
        return 0

    def _is_registered(self) -> bool:
        """Whether this is the process of the group; another one may have been quicker."""
        if not self._group.exists():
            return False
        with self._group.lock():
            named = self._group.process()
            if named is not None and named.identity != self._me and self._group.is_served():
                return False
            failed = named.failed_starts if named is not None and named.identity == self._me else 0
            self._group.name_process(WarmProcess(self._me, LOADING, failed))
        return True

    def _load(self) -> None:
        for name in kinds.PRELOADED.get(self._group.name, ()):
            try:
                importlib.import_module(name)
            except Exception:
                # The job that needs it meets the same error, and says so to whoever asked for it.
                traceback.print_exc()
        self._tell(NOTHING)
        self._used_at = time.monotonic()

    def _turn(self) -> bool:
        """Look once, and work where there is something to do. Returns: whether to look again."""
        if self._group.waiting():
            with self._group.lock():
                if not self._is_current():
                    self._hand_over()
                    return False
                job_id = self._taken()
            if job_id is not None:
                self._carry_out(job_id)
            return True
        return self._group.exists() and (not self._should_exit() or not self._left())

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
        named = self._group.process()
        return named is not None and named.identity == self._me

    def _left(self) -> bool:
        """Whether nobody put a job in line until now, and nobody will count on this process from here on."""
        with self._group.lock():
            if self._group.waiting():
                return False
            self._resign()
        return True

    def _hand_over(self) -> None:
        """To a process that knows the code as it is now. Under the group's lock."""
        self._resign()
        ensure_running(self._group, self._successor)

    def _resign(self) -> None:
        if self._is_named():
            self._group.name_process(None)

    def _successor(self) -> Liveness | None:
        return spawn([sys.executable, *sys.orig_argv[1:]], self._group.log_path, ONE_THREAD)

    def _taken(self) -> str | None:
        """The job that has waited longest, now this process's. Under the group's lock."""
        for ticket in self._group.waiting():
            job_id = job_of(ticket)
            folder = job_folder(self._group.store_folder, job_id)
            if folder.exists():
                # Before the ticket goes: a job that neither waits nor has a process is taken for lost.
                write_json(folder / PROCESS, asdict(self._me))
            if self._group.take(ticket) and folder.exists():
                self._tell(job_id)
                return job_id
        return None

    def _carry_out(self, job_id: str) -> None:
        folder = job_folder(self._group.store_folder, job_id)
        tempfile.tempdir = str(folder / "work")
        # An error that reaches this place ends the process: a job whose end cannot be written must not read as running.
        with output_to(folder / "log.txt"):
            carry_out(self._group.store_folder, job_id)
        tempfile.tempdir = None
        self._tell(NOTHING)
        self._used_at = time.monotonic()

    def _tell(self, doing: str) -> None:
        self._group.name_process(WarmProcess(self._me, doing))


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


def code_stamp() -> str:
    """Changes with every edit of a file that this process may have imported."""
    stamps = []
    for path in sorted(CODE.rglob("*.py")):
        with contextlib.suppress(FileNotFoundError):  # an editor's own file, gone since
            stat = path.stat()
            stamps.append(f"{path} {stat.st_mtime_ns} {stat.st_size}")
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()
