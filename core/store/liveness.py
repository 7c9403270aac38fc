"""Liveness of the process that executes a run or job, and the status derived from it."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from core.store.database import Database
from core.store.records import Liveness, Status

# Interval between heartbeats of a worker, and silence after which a worker on another host counts as dead.
HEARTBEAT_S = 2.0
SILENCE_S = 8.0
# Time that a run may wait for the first heartbeat of its worker after a hand-over.
HAND_OVER_S = 60.0
# Silence after which a worker of this machine counts as not responding, though its process exists.
UNRESPONSIVE_S = 30.0
# Files with the number of processes that the kernel killed for lack of memory: in this container, or on this machine.
OOM_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))
# Largest difference between two readings of the same start time, in seconds or ticks.
START_TOLERANCE = 0.5


@cache
def host_name() -> str:
    return socket.gethostname()


@cache
def boot_id() -> str:
    """Return an identifier that changes with every boot, so that pids from before a reboot do not match."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(round(psutil.boot_time()))


def liveness_of(pid: int | None = None) -> Liveness:
    """Return the identity of a local process, by default this one. Raises: psutil.NoSuchProcess."""
    pid = os.getpid() if pid is None else pid
    return Liveness(host_name(), boot_id(), pid, _started_at(pid))


def _started_at(pid: int) -> float:
    """Return a process's start time: ticks since boot on Linux, elsewhere seconds since the epoch.

    Ticks do not change when the system clock is adjusted.

    Raises: psutil.NoSuchProcess.
    """
    fields = _stat_fields(pid)
    return float(fields[19]) if fields else float(psutil.Process(pid).create_time())


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on; empty without that file. Much faster than psutil."""
    try:
        # The second field is the program's name in parentheses, which may contain any character.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def is_alive(worker: Liveness, heartbeat_at: float | None) -> bool:
    """Return True if a local process exists, or if one on another host sent a recent heartbeat."""
    if worker.host != host_name():
        return heartbeat_at is not None and time.time() - heartbeat_at < SILENCE_S
    if worker.boot_id != boot_id():
        return False
    try:
        same = abs(_started_at(worker.pid) - worker.started_at) < START_TOLERANCE
        # A process that has ended may still be listed. Linux reports X while it removes the entry.
        fields = _stat_fields(worker.pid)
        ended = fields[0] in "ZX" if fields else psutil.Process(worker.pid).status() == psutil.STATUS_ZOMBIE
        return same and not ended
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return same


def oom_kills() -> int:
    """Return the number of processes that the kernel has killed for lack of memory since boot; 0 if unknown."""
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in path.read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


def to_json(worker: Liveness | None) -> str | None:
    """Serialise an identity for the database."""
    return json.dumps(asdict(worker)) if worker else None


def from_json(text: str | None) -> Liveness | None:
    return Liveness(**json.loads(text)) if text else None


def observed_status(row: sqlite3.Row) -> Status:
    """Return the current status of a row of work, which is INTERRUPTED if its process has died."""
    status, worker, heartbeat_at = Status(row["status"]), from_json(row["worker"]), row["heartbeat_at"]
    if not status.active:
        return status
    # Another process holds a run until its worker registers; a job has no such holder.
    is_job = "kind" in row.keys() and row["kind"] != "run"  # noqa: SIM118 # `in row` would search its values
    may_be_held = worker is None or (status == Status.STARTING and not is_job)
    if may_be_held and time.time() - (heartbeat_at or 0.0) > HAND_OVER_S:
        return Status.INTERRUPTED
    return status if worker is None or is_alive(worker, heartbeat_at) else Status.INTERRUPTED


def rows_of_work(database: Database, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
    """Query rows of work, and repeat the query while a row looks interrupted and the statuses change.

    A process may record the end of its work and exit just after the row was read.
    """
    rows = database.all(sql, values)
    while any(row["status"] is not None and observed_status(row) == Status.INTERRUPTED for row in rows):
        before, rows = rows, database.all(sql, values)
        if [row["status"] for row in rows] == [row["status"] for row in before]:
            break
    return rows
