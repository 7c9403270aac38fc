"""Two ways to start a worker: a new interpreter, or a fork of a process that has imported everything already."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Protocol

import psutil

from core.errors import EngineError
from core.settings import PREFIX
from core.store import Liveness, Store
from core.store.liveness import liveness_of
from core.workers.code_stamp import code_stamp
from core.workers.machine import gpu_ids
from core.workers.processes import spawn

HAS_FORK = sys.platform == "linux"


class Starter(Protocol):
    """Starts workers for claimed runs. The worker lives in a session of its own and writes into the run's log."""

    def holder(self) -> Liveness | None:
        """The process that holds a claimed run until its worker registers; None when it cannot be named."""
        ...

    def start(self, store: Store, run_id: str, attempt: int, slot: int) -> None:
        """Raises: EngineError when no worker can be started."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class SpawnStarter:
    """Executes a new interpreter; it needs seconds to import torch."""

    def holder(self) -> Liveness | None:
        return liveness_of()

    def start(self, store: Store, run_id: str, attempt: int, slot: int) -> None:
        command = [sys.executable, "-m", "core.workers.run_worker", str(store.folder), run_id, str(attempt), str(slot)]
        try:
            log_path = store.log_path(run_id)
            log_path.parent.mkdir(parents=True, exist_ok=True)
            worker = spawn(command, log_path, _gpus())
        except OSError as error:
            reason = error.strerror
            raise EngineError(f"No worker could be started ({reason}): close programs and try again.") from error
        # The starter may be a worker that ended itself and is gone before the new one has imported torch.
        if worker is not None:
            store.hand_over(run_id, attempt, worker)

    def close(self) -> None:
        """Nothing is held open."""


class WarmStarter:
    """Asks the launcher (`core.workers.launcher`), which forks in milliseconds."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def connected(cls, store: Store) -> WarmStarter | None:
        """A line to the store's launcher, None when there is none."""
        if not HAS_FORK:
            return None
        try:
            return cls(_connect(store))
        except OSError:
            return None

    def holder(self) -> Liveness | None:
        credentials = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", credentials)
        try:
            return liveness_of(pid)
        except psutil.NoSuchProcess:
            return None

    def start(self, store: Store, run_id: str, attempt: int, slot: int) -> None:
        # The launcher may be older than the settings that count now.
        changed = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
        request = {"store": str(store.folder), "run": run_id, "attempt": attempt, "slot": slot, "settings": changed}
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise EngineError(f"The launcher went away ({error.strerror}).") from error

    def close(self) -> None:
        self._connection.close()


def start_launcher(store: Store) -> None:
    """Start the store's launcher in a session of its own, unless one runs; returns at once."""
    if not HAS_FORK:
        return
    if _is_there(store):
        return
    command = [sys.executable, "-m", "core.workers.launcher", str(socket_path(store))]
    spawn(command, socket_folder() / "launcher.log", _gpus())


def _is_there(store: Store) -> bool:
    try:
        _connect(store).close()
    except BlockingIOError:
        return True  # with many callers, and still importing
    except OSError:
        return False
    return True


def _connect(store: Store) -> socket.socket:
    """A connection to the store's launcher, at once or not at all: a page must not wait for a full queue of callers.

    Raises: BlockingIOError where the queue is full, OSError where there is no launcher.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(socket_path(store)))
        connection.setblocking(True)
    except OSError:
        connection.close()
        raise
    return connection


def wait_for_launcher(store: Store, timeout_s: float) -> bool:
    """Wait until the launcher takes connections (it may still be importing). Returns: whether it does."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        starter = WarmStarter.connected(store)
        if starter is not None:
            starter.close()
            return True
        time.sleep(0.05)
    return False


def _gpus() -> dict[str, str]:
    """A worker that starts the next run sees one GPU itself; its child chooses among all."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpu_ids())} if gpu_ids() else {}


def socket_folder() -> Path:
    """A folder that only this user can enter. Raises: EngineError when somebody else owns it."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"scl-playground-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise EngineError(f"The folder {folder} is open to others: remove it.")
    return folder


def socket_path(store: Store) -> Path:
    """One launcher per store, interpreter and state of the code, so that an edited loop is never run from memory."""
    key = f"{store.folder}|{sys.executable}|{_my_code()}"
    return socket_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.sock"


@cache
def _my_code() -> str:
    """The stamp of the code that this process runs, which it read when it began."""
    return code_stamp()
