"""Processes of runs and jobs. Each has a separate session, is independent of the server and ends with its children.

This module also sets their CPU priority, redirects their output, and computes a stamp of the code on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from core.messages import Message
from core.store.liveness import liveness_of
from core.store.records import Liveness

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "core"
# Windows has no sessions: a separate process group keeps the console's Ctrl-C away.
DETACHED = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
# Time for a process to end after it is asked to, before it is killed.
GRACE_S = 1.0
# The same for a job that is only storing its result.
KEEPING_GRACE_S = 30.0
LOOK_EVERY_S = 0.02
MOST_HANDLES = 65_536
NICENESS = 19
AUTOGROUP = Path("/proc/self/autogroup")
# The kernel accepts one change per 0.1 s from unprivileged processes, over all sessions.
AUTOGROUP_TRIES, AUTOGROUP_WAIT_S = 5, 0.11
# By default OpenMP threads spin at every barrier. Next to another busy process, one thread then waits for a core that
# the spinning ones hold. With passive waiting a step takes half the time next to such a process, and a quarter more
# on an idle machine (two cores, benchmarks/bench_contention.py).
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
# Libraries create thread pools on import. With one thread, sums have a fixed order, so maps are reproducible.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "RAYON")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
# Message of a run whose worker the system refused to start.
START_FAILURE = Message("No worker could be started ({reason}): close programs and try again.")


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment plus `more`. PATIENT applies unless the user set OMP_WAIT_POLICY."""
    return {**PATIENT, **os.environ, **more}


def spawn(command: Sequence[str], log_path: Path, environment: Mapping[str, str]) -> Liveness | None:
    """Start a process that writes to a file and outlives this one. Raises: OSError.

    Args:
        environment: additional variables.
    Returns: its identity; None if it has already ended.
    """
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            list(command),
            cwd=ROOT,
            env=child_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            creationflags=DETACHED,
        )
    identity = None
    with contextlib.suppress(psutil.NoSuchProcess):
        identity = liveness_of(process.pid)
    # A child that has ended stays a zombie of this process until it is waited for.
    threading.Thread(target=process.wait, name=f"wait for {process.pid}", daemon=True).start()
    return identity


def wait_for(what: Callable[[], bool], timeout_s: Callable[[], float]) -> None:
    """Wait until a condition holds, but no longer than `timeout_s`."""
    began = time.monotonic()
    while not what() and time.monotonic() - began < timeout_s():
        time.sleep(LOOK_EVERY_S)


def kill_group(pid: int) -> None:
    """Kill a process and its group."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
        # A process that another program started may not lead its group; then the group must not be killed.
        if hasattr(os, "killpg") and os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            psutil.Process(pid).kill()


def free_port() -> int:
    """Return a free local port."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def lower_priority() -> None:
    """Give interactive processes priority over this one."""
    if not hasattr(os, "nice"):
        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        return
    os.nice(NICENESS)
    # With autogroups, Linux applies a process's niceness only within its session, which has a niceness too.
    if not AUTOGROUP.exists() or os.getsid(0) != os.getpid():
        return
    with contextlib.suppress(OSError):
        for _ in range(AUTOGROUP_TRIES):
            try:
                AUTOGROUP.write_text(str(NICENESS))
                return
            except BlockingIOError:
                time.sleep(AUTOGROUP_WAIT_S)


def raise_handle_limit() -> None:
    """Raise the soft limit on open files to the hard one, up to MOST_HANDLES; children inherit it.

    Each session of a server opens several files, and some systems begin with a limit of 256.
    """
    try:
        import resource  # not on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_HANDLES if hard == resource.RLIM_INFINITY else min(hard, MOST_HANDLES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def code_stamp() -> str:
    """Return a hash that changes with every edit of the app's code."""
    stamps = []
    for path in sorted(CODE.rglob("*.py")):
        with contextlib.suppress(FileNotFoundError):  # a temporary file of an editor
            stat = path.stat()
            stamps.append(f"{path} {stat.st_mtime_ns} {stat.st_size}")
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


# Output


def log(text: str) -> None:
    """Print a line to this process's log. A full disk must not hide the original error."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def print_into(path: Path) -> None:
    """Redirect the output of this process and its children to a file. Unlike a pipe, it needs no living reader."""
    flush()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Redirect the output of this process and its children to a file within the block, native code included."""
    flush()
    copies = [(number, os.dup(number)) for number in (1, 2)]
    print_into(path)
    try:
        yield
    finally:
        flush()
        for number, copy in copies:
            os.dup2(copy, number)
            os.close(copy)


def flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
