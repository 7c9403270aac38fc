"""Helpers that observe jobs and their processes from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from core.workers import JobRecord, Jobs

# A busy machine is slow, so waits are as long as a test may take.
WAIT_S = 100.0


def wait_until(found: Jobs, job_id: str, what: Callable[[JobRecord], bool], timeout_s: float = WAIT_S) -> JobRecord:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        record = found.job(job_id)
        if what(record):
            return record
        time.sleep(0.02)
    raise AssertionError(found.job(job_id), found.log(job_id))


def ended(record: JobRecord) -> bool:
    return not record.active


def wait_for(what: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def process_of(found: Jobs, job_id: str) -> psutil.Process:
    worker = found.job(job_id).worker
    assert worker is not None
    return psutil.Process(worker.pid)


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def processes_on(store_folder: Path) -> list[psutil.Process]:
    """Return the living processes that were started for a store's folder, by any parent."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(store_folder) in process.cmdline() and not is_gone(process.pid):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it has ended, or belongs to another user
    return found


def only_process_on(store_folder: Path) -> psutil.Process:
    """Return the only process of a store's folder. Shortly after its start it may have no command line yet."""
    wait_for(lambda: processes_on(store_folder) != [])
    [process] = processes_on(store_folder)
    return process
