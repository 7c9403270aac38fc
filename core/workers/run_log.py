"""The log of a run: what whoever looks for the cause of an error reads."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def log(text: str) -> None:
    """A line into this process's log; a full disk must not hide what went wrong before."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def open_log(path: Path) -> int:
    """A descriptor that appends to a file, never a pipe, so that a worker outlives everybody."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
