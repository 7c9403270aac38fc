"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

SUFFIX = ".partial"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder, which takes the place of `path` when the block ends without an error.

    A reader finds the old file or the new one, whole. The temporary file is removed where the block raises.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}{SUFFIX}")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):  # what is in the way is what is raised
            partial.unlink(missing_ok=True)
        raise


def drop_left(path: Path) -> None:
    """Remove what a process that was killed while it wrote this very file has left."""
    for partial in path.parent.glob(f".{path.name}.*{SUFFIX}"):
        pid = partial.name.split(".")[-3]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            partial.unlink(missing_ok=True)
