"""Who starts the process of a warm group, and when it is given up."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from core.messages import Message
from core.store.job_table import LOADING, JobTable, WarmProcess
from core.store.records import Liveness
from core.workers import job_kinds as kinds
from core.workers.machine import visible_gpus
from core.workers.threads import ONE_THREAD

# After this number of processes in a row that ended while they loaded, whatever ends them (no memory) would end the
# next one too.
MAX_FAILED_STARTS = 3


def environment_of(group: str) -> dict[str, str]:
    """What a group's process has in its environment besides ours."""
    return visible_gpus() if group in kinds.FORKING else dict(ONE_THREAD)


def ensure_running(table: JobTable, group: str, spawn: Callable[[], Liveness | None]) -> None:
    """Start a group's process unless one lives.

    Args:
        spawn: starts one, and names it; None when it has ended already.
    Raises: OSError when no process can be started.
    """
    if _is_served(table, group):
        return  # pages ask whenever they are drawn, and a look keeps nobody from writing
    with table.transaction():
        if _is_served(table, group):
            return
        last = table.warm_process(group)
        failed = last.failed_starts + 1 if last is not None and last.doing == LOADING else 0
        if failed >= MAX_FAILED_STARTS:
            table.name_warm_process(group, None)
            _fail_all(table, group, _failed(failed))
            return
        log_path = table.warm_log_path(group)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_path.write_bytes(b"")
        worker = spawn()
        if worker is not None:
            table.name_warm_process(group, WarmProcess(worker, LOADING, failed))


def _failed(times: int) -> Message:
    return Message(
        "The process for such jobs ended {times} times while it loaded its libraries: close programs that need memory, "
        "and start the job again; its log says more.",
        times=times,
    )


def _is_served(table: JobTable, group: str) -> bool:
    """Whether the named process lives; one that still loads counts."""
    process = table.warm_process(group)
    return process is not None and process.alive


def _fail_all(table: JobTable, group: str, message: Message) -> None:
    """End every job that waits, with the group's log as theirs."""
    for job_id in table.waiting(group):
        shutil.copyfile(table.warm_log_path(group), table.log_path(job_id))
        table.end(job_id, "failed", message=message)
