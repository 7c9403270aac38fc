"""Processes of jobs: each in a session of its own, so that it belongs to no server, and ended with its children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from core.store.liveness import is_alive, liveness_of
from core.store.records import Liveness
from core.workers.threads import child_environment

ROOT = Path(__file__).resolve().parents[2]
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
