"""Two ways to start a worker: a new interpreter, or a fork of a process that has imported everything already."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import psutil

from core.errors import EngineError
from core.settings import PREFIX
from core.store import Liveness, Store
from core.store.liveness import liveness_of
from core.workers.machine import gpu_ids
from core.workers.threads import child_environment

ROOT = Path(__file__).resolve().parents[2]
HAS_FORK = sys.platform == "linux"
# Windows knows no sessions: a process group of its own keeps the console's Ctrl-C away.
DETACHED = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


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
        try:
            log = open_log(store, run_id)
            try:
                pid = _detach(
                    ["-m", "core.workers.run_worker", str(store.folder), run_id, str(attempt), str(slot)], log
                )
            finally:
                os.close(log)
        except OSError as error:
            reason = error.strerror
            raise EngineError(f"No worker could be started ({reason}): close programs and try again.") from error
        # The starter may be a worker that ended itself and is gone before the new one has imported torch.
        with suppress(psutil.NoSuchProcess):
            store.hand_over(run_id, attempt, liveness_of(pid))

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
    with (socket_folder() / "launcher.log").open("ab") as log:
        _detach(["-m", "core.workers.launcher", str(socket_path(store))], log.fileno())


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


def _detach(arguments: list[str], log: int) -> int:
    """Execute a new interpreter in a session of its own, with its output in a file; returns its id. Raises: OSError."""
    # A worker that starts the next run sees one GPU itself; its child chooses among all.
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(gpu_ids())} if gpu_ids() else {}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=child_environment(visible),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        creationflags=DETACHED,
    )
    # While we live, a worker that ended is our zombie until somebody has waited for it.
    threading.Thread(target=process.wait, name=f"wait for {process.pid}", daemon=True).start()
    return process.pid


def open_log(store: Store, run_id: str) -> int:
    """A descriptor that appends to the run's log; a file, never a pipe, so that a worker outlives everybody."""
    path = store.log_path(run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)


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
    key = f"{store.folder}|{sys.executable}|{_code_time()}"
    return socket_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.sock"


@cache
def _code_time() -> int:
    """When the code that this process runs was last edited."""
    return max(path.stat().st_mtime_ns for path in (ROOT / "core").rglob("*.py"))
