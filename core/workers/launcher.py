"""The launcher: imports torch and transformers once, then forks a worker for every request.

It is executed on its own and in a session of its own, so it belongs to no server. It runs no tensor operation and
touches no GPU before it forks: neither thread pools nor CUDA survive a fork.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

IDLE_EXIT_S = 30 * 60
REQUEST_TIMEOUT_S = 5.0
PREPARED = (
    "core.workers.run_worker",
    "core.store.migrations",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
)


def serve(path: Path) -> int:
    """Take requests on a Unix socket until nobody has asked for IDLE_EXIT_S."""
    lock = path.with_suffix(".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0  # another launcher has this socket
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    # Clients may connect from here on; they are served once the imports are done.
    listener.listen(128)
    listener.settimeout(IDLE_EXIT_S)
    for name in PREPARED:
        importlib.import_module(name)
    # Forked workers are nobody's to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            path.unlink(missing_ok=True)
            return 0
        with connection:
            request = _read(connection)
        if request is not None and os.fork() == 0:
            listener.close()
            lock.close()
            _become_worker(request)


def _read(connection: socket.socket) -> dict[str, Any] | None:
    """One line of JSON; None when a client only looked whether somebody is here."""
    connection.settimeout(REQUEST_TIMEOUT_S)
    try:
        line = connection.makefile("rb").readline()
        return json.loads(line) if line else None
    except (OSError, ValueError):
        traceback.print_exc()
        return None


def _become_worker(request: dict[str, Any]) -> None:
    """In the forked child: a session and a log of its own, then the work. Never returns."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        from core.settings import PREFIX
        from core.store import Store
        from core.workers.run_worker import work

        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            del os.environ[name]
        os.environ.update(request["settings"])
        store_folder, run_id = str(request["store"]), str(request["run"])
        log = _open_log(Store(store_folder).log_path(run_id))
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = work(store_folder, run_id, int(request["attempt"]), int(request["slot"]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _open_log(path: Path) -> int:
    """A descriptor that appends to a file, never a pipe, so that a worker outlives everybody."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1])))
