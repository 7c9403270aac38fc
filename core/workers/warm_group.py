"""A warm group: the jobs that wait in line for one process, and which process that is.

Its folder, `jobs/.warm/<group>` of the store's folder, holds a ticket for every job that waits (`waiting/`), the
process that serves the line (process.json) and what that one printed beside its jobs (log.txt). Whoever removes a
ticket, which only one can, has the job. A process is started, takes a job, leaves or is ended under the group's lock.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from core.store.liveness import is_alive
from core.store.records import Liveness
from core.workers.job_files import STATE, job_folder, read_json, write_json

LOCK_TIMEOUT_S = 10.0
LOCK_POLL_S = 0.005
# What a process does that is no job.
LOADING = "loading"
NOTHING = ""
# So many processes in a row may end while they load: whatever ends them (no memory) would end the next one too.
MAX_FAILED_STARTS = 3
FAILED = (
    "The process for such jobs ended {times} times while it loaded its libraries: close programs that need memory, "
    "and start the job again; its log says more."
)


@dataclass(frozen=True, slots=True)
class WarmProcess:
    """The process of a group.

    Attributes:
        doing: LOADING, NOTHING, or the id of the job that it works on.
        failed_starts: how many before it ended while they were loading.
    """

    identity: Liveness
    doing: str
    failed_starts: int = 0


class WarmGroup:
    """The line of a group in one store's folder, and who serves it."""

    def __init__(self, store_folder: Path, name: str) -> None:
        self.store_folder = store_folder
        self.name = name
        self.folder = store_folder / "jobs" / ".warm" / name
        self.log_path = self.folder / "log.txt"
        self._line = self.folder / "waiting"
        self._process = self.folder / "process.json"

    def make(self) -> None:
        """Raises: OSError where the folder cannot be written."""
        self._line.mkdir(parents=True, exist_ok=True)

    def exists(self) -> bool:
        return self._line.exists()

    def lock(self) -> FileLock:
        """Whoever starts or ends the process holds it, and so does the process while it takes a job or leaves."""
        return FileLock(self.folder / ".lock", timeout=LOCK_TIMEOUT_S, poll_interval=LOCK_POLL_S)

    def waiting(self) -> list[str]:
        """The tickets of the jobs that wait, the oldest first."""
        try:
            return sorted(path.name for path in self._line.iterdir())
        except FileNotFoundError:
            return []

    def put(self, ticket: str) -> None:
        (self._line / ticket).touch()

    def take(self, ticket: str) -> bool:
        """Whether the ticket was still there: of several who try, one has it."""
        try:
            (self._line / ticket).unlink()
        except FileNotFoundError:
            return False
        return True

    def process(self) -> WarmProcess | None:
        """The process that was last named, alive or not; None when it left in good order."""
        given = read_json(self._process) or {}
        try:
            return WarmProcess(Liveness(**given["identity"]), given["doing"], given["failed_starts"])
        except (KeyError, TypeError):
            return None

    def name_process(self, process: WarmProcess | None) -> None:
        if process is None:
            self._process.unlink(missing_ok=True)
        else:
            write_json(self._process, asdict(process))

    def is_served(self) -> bool:
        """Whether the named process lives; one that still loads counts."""
        process = self.process()
        return process is not None and is_alive(process.identity, None)

    def fail_all(self, message: str) -> None:
        """End every job that waits, with the group's log as theirs."""
        for ticket in self.waiting():
            folder = job_folder(self.store_folder, job_of(ticket))
            if self.take(ticket) and folder.exists():
                shutil.copyfile(self.log_path, folder / "log.txt")
                write_json(folder / STATE, {"status": "failed", "message": message})


def new_ticket(job_id: str) -> str:
    """A name that sorts by time."""
    return f"{time.time_ns():020d}-{job_id}"


def job_of(ticket: str) -> str:
    return ticket.partition("-")[2]


def ensure_running(group: WarmGroup, spawn: Callable[[], Liveness | None]) -> None:
    """Start a group's process unless one lives. To be called under the group's lock.

    Args:
        spawn: starts one, and names it; None when it has ended already.
    Raises: OSError when no process can be started.
    """
    last = group.process()
    if last is not None and is_alive(last.identity, None):
        return
    failed = last.failed_starts + 1 if last is not None and last.doing == LOADING else 0
    if failed >= MAX_FAILED_STARTS:
        group.name_process(None)
        group.fail_all(FAILED.format(times=failed))
        return
    group.log_path.write_bytes(b"")
    identity = spawn()
    if identity is not None:
        group.name_process(WarmProcess(identity, LOADING, failed))
