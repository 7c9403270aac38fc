"""Whether the code on disk is still that which a process has in memory."""

from __future__ import annotations

import contextlib
import hashlib

from core.workers.processes import ROOT

CODE = ROOT / "core"


def code_stamp() -> str:
    """Changes with every edit of a file that a process of ours may have imported."""
    stamps = []
    for path in sorted(CODE.rglob("*.py")):
        with contextlib.suppress(FileNotFoundError):  # an editor's own file, gone since
            stat = path.stat()
            stamps.append(f"{path} {stat.st_mtime_ns} {stat.st_size}")
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()
