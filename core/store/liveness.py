"""Whether the process that has a run or a job still exists, and the status of the work: never a guess."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from core.store.database import Database
from core.store.records import Liveness, Status

# A worker beats every HEARTBEAT_S; one that cannot be looked at (another host) is given up after SILENCE_S.
HEARTBEAT_S = 2.0
SILENCE_S = 8.0
# How long a run that was handed over may wait for its worker's first beat.
HAND_OVER_S = 60.0
# Seconds or ticks by which two readings of one start time may differ.
START_TOLERANCE = 0.5


@cache
def host_name() -> str:
    return socket.gethostname()


@cache
def boot_id() -> str:
    """Changes with every boot, so that a pid from before is not taken for one of today."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(round(psutil.boot_time()))


def liveness_of(pid: int | None = None) -> Liveness:
    """The identity of a process here, this one by default. Raises: psutil.NoSuchProcess."""
    pid = os.getpid() if pid is None else pid
    return Liveness(host_name(), boot_id(), pid, _started_at(pid))


def _started_at(pid: int) -> float:
    """When a process started, on a clock that nobody sets: ticks since boot on Linux, else seconds of the day's clock.

    Raises: psutil.NoSuchProcess.
    """
    fields = _stat_fields(pid)
    return float(fields[19]) if fields else float(psutil.Process(pid).create_time())


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and only its entry is left. Raises: psutil.NoSuchProcess, psutil.AccessDenied."""
    fields = _stat_fields(pid)
    # X is what it reads while its entry is being removed.
    return fields[0] in ("Z", "X") if fields else bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def _stat_fields(pid: int) -> list[str]:
    """What Linux says of a process, from its third field on: psutil takes far longer; empty elsewhere and of none."""
    try:
        # The second field is the program's name in brackets and may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def is_alive(worker: Liveness, heartbeat_at: float | None) -> bool:
    """Whether the process exists here; for another host, whether it was heard of lately."""
    if worker.host != host_name():
        return heartbeat_at is not None and time.time() - heartbeat_at < SILENCE_S
    if worker.boot_id != boot_id():
        return False
    try:
        same = abs(_started_at(worker.pid) - worker.started_at) < START_TOLERANCE
        return same and not _is_zombie(worker.pid)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return same


def to_json(worker: Liveness | None) -> str | None:
    """As the database keeps it."""
    return json.dumps(asdict(worker)) if worker else None


def from_json(text: str | None) -> Liveness | None:
    return Liveness(**json.loads(text)) if text else None


def observed_status(row: sqlite3.Row) -> Status:
    """Return the status of a row of work as it is true now."""
    status, worker, heartbeat_at = Status(row["status"]), from_json(row["worker"]), row["heartbeat_at"]
    if not status.active:
        return status
    # A run is held by another process until its own registers; a job's process has no holder before it.
    is_job = "kind" in row.keys() and row["kind"] != "run"  # noqa: SIM118 # a row looks among its values otherwise
    may_be_held = worker is None or (status == Status.STARTING and not is_job)
    if may_be_held and time.time() - (heartbeat_at or 0.0) > HAND_OVER_S:
        return Status.INTERRUPTED
    return status if worker is None or is_alive(worker, heartbeat_at) else Status.INTERRUPTED


def rows_of_work(database: Database, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
    """Return rows with the status of work, read again where one reads as interrupted.

    Its process may have ended since the row was read, once it had written how the work ended.
    """
    rows = database.all(sql, values)
    while any(row["status"] is not None and observed_status(row) == Status.INTERRUPTED for row in rows):
        before, rows = rows, database.all(sql, values)
        if [row["status"] for row in rows] == [row["status"] for row in before]:
            break
    return rows
