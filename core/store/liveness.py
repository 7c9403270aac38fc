"""Whether the process that has a run still exists: never a guess."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path

import psutil

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


def observed(status: Status, worker: Liveness | None, heartbeat_at: float | None) -> Status:
    """The status as it is true now."""
    if not status.active:
        return status
    silence_s = time.time() - (heartbeat_at or 0.0)
    if status == Status.STARTING and silence_s > HAND_OVER_S:
        return Status.INTERRUPTED  # whoever took it over never started a worker that beats
    if worker is None:
        return status if silence_s <= HAND_OVER_S else Status.INTERRUPTED
    return status if is_alive(worker, heartbeat_at) else Status.INTERRUPTED
