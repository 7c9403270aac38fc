"""Atomic writes: a file is complete or absent."""

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
    """Yield a temporary path in the same folder, which replaces `path` if the block ends without an error.

    A reader always finds a complete file, the old or the new one. If the block raises, the temporary file is removed.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}{SUFFIX}")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):  # the block's exception matters more
            partial.unlink(missing_ok=True)
        raise


def remove_partial_files(path: Path) -> None:
    """Remove temporary files of `path` whose process was killed while it wrote them."""
    for partial in path.parent.glob(f".{path.name}.*{SUFFIX}"):
        pid = partial.name.split(".")[-3]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            partial.unlink(missing_ok=True)
