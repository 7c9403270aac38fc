"""Processes of runs and jobs: each has a session of its own, belongs to no server and ends with its children.

How they use the processor, what they print, and whether their code is still that on disk.
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

from core.store.liveness import is_alive, liveness_of
from core.store.records import Liveness

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "core"
# Windows knows no sessions: a process group of its own keeps the console's Ctrl-C away.
DETACHED = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# A process that was asked to end has this long before it is ended.
GRACE_S = 1.0
# One that has done all that it counts is only keeping its result, and has this long to get to the end.
KEEPING_GRACE_S = 30.0
LOOK_EVERY_S = 0.02
NICENESS = 19
AUTOGROUP = Path("/proc/self/autogroup")
# The kernel takes one change in a tenth of a second, of all sessions together, from those without special rights.
AUTOGROUP_TRIES, AUTOGROUP_WAIT_S = 5, 0.11
# By default OpenMP's threads spin at every barrier. Beside another busy process one of them then waits for a processor
# that the others hold by spinning. With threads that sleep a step beside such a process takes half the time, and one
# with the machine to itself a quarter more (two cores, benchmarks/bench_contention.py).
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
# Thread pools are made when a library is imported. One thread also adds numbers in one order: the same map again.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "RAYON")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that we start: ours, where a person's own waiting policy holds, and `more`."""
    return {**PATIENT, **os.environ, **more}


def spawn(command: Sequence[str], log_path: Path, environment: Mapping[str, str]) -> Liveness | None:
    """Start a process that writes into a file and outlives us. Raises: OSError.

    Args:
        environment: what it has besides ours.
    Returns: its identity; None when it has ended already.
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
    # While we live, a process that ended is our zombie until somebody has waited for it.
    threading.Thread(target=process.wait, name=f"wait for {process.pid}", daemon=True).start()
    return identity


def end(process: Liveness, grace_s: Callable[[], float]) -> None:
    """Ask a process and its group to end, and end them when they do not. One that has the pid by chance is let be."""
    for how in (signal.SIGTERM, KILL):
        if not is_alive(process, None):
            return
        signal_group(process.pid, how)
        wait_for(lambda: not is_alive(process, None), grace_s)


def wait_for(what: Callable[[], bool], timeout_s: Callable[[], float]) -> bool:
    """Until something is so, or too long. Returns: whether it is."""
    began = time.monotonic()
    while not what():
        if time.monotonic() - began >= timeout_s():
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def signal_group(pid: int, how: signal.Signals) -> None:
    """To a process and its children."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
        # It leads its group unless somebody else started it, whose group would be ended with it.
        if hasattr(os, "killpg") and os.getpgid(pid) == pid:
            os.killpg(pid, how)
        else:
            psutil.Process(pid).send_signal(how)


def free_port() -> int:
    """A port on this machine that nobody listens on."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def lower_priority() -> None:
    """Let everything that answers a person go first."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
        _lower_session()
    else:
        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)


def _lower_session() -> None:
    """Linux may share the processor among sessions first; a process's own niceness then counts only within its own."""
    if not AUTOGROUP.exists() or os.getsid(0) != os.getpid():
        return
    with contextlib.suppress(OSError):
        for _ in range(AUTOGROUP_TRIES):
            try:
                AUTOGROUP.write_text(str(NICENESS))
                return
            except BlockingIOError:
                time.sleep(AUTOGROUP_WAIT_S)


def code_stamp() -> str:
    """Changes with every edit of a file that a process of ours may have imported."""
    stamps = []
    for path in sorted(CODE.rglob("*.py")):
        with contextlib.suppress(FileNotFoundError):  # an editor's own file, gone since
            stat = path.stat()
            stamps.append(f"{path} {stat.st_mtime_ns} {stat.st_size}")
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


# What processes print


def log(text: str) -> None:
    """Print a line into this process's log; a full disk must not hide what went wrong before."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def print_into(path: Path) -> None:
    """Have this process and its children print into a file, never a pipe, so that they outlive everybody."""
    flush()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """What this process and its children print meanwhile goes to a file, also what no Python prints."""
    flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    print_into(path)
    try:
        yield
    finally:
        flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
