"""Disk usage of runs."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

Dropped = Literal["snapshots", "weights"]
# File systems record times in ticks. A folder modified within this time may change without a new modification time.
SETTLED_NS = 1_000_000_000
# Limit on cached folder listings. A run has a few folders.
MOST_LISTINGS = 65_536
CHECKPOINT, SNAPSHOT, STATE = "checkpoint.", "snapshot-", "state-"
# Kind of a file, by the beginning of its name.
KINDS = {CHECKPOINT: "weights", SNAPSHOT: "snapshots", STATE: "snapshots"} | dict.fromkeys(
    ("frame-", "tokens.", "predictions-"), "frames"
)


@dataclass(frozen=True, slots=True)
class RunSize:
    """Disk usage of a run, in bytes.

    Attributes:
        weights: the checkpoint; for a finished run, its final weights.
        snapshots: copies of the weights at earlier steps, and states kept for branches.
        frames: vectors, logits, maps and attention of every frame, plus the tokens and the predictions.
        others: results computed later (maps, measures, layers, texts), and the log.
    """

    weights: int = 0
    snapshots: int = 0
    frames: int = 0
    others: int = 0

    @property
    def total(self) -> int:
        return self.weights + self.snapshots + self.frames + self.others


def size_text(size: float) -> str:
    """Format bytes as 0.3 MB, 285 MB or 1.2 GB, in units of 2**20 and 2**30 bytes."""
    megabytes = size / 2**20
    if megabytes >= 1000:
        return f"{size / 2**30:,.1f} GB"
    return f"{megabytes:.0f} MB" if megabytes >= 10 else f"{megabytes:.1f} MB"


def sizes_of_runs(folder: Path) -> dict[str, RunSize]:
    """Return the size of every run folder in `folder`, by run id."""
    _sizes, run_folders = _listing(str(folder))
    return {os.path.basename(path): size_of_run(path) for path in run_folders}


def size_of_run(folder: str | Path) -> RunSize:
    """Return the size of a run folder; everything in its subfolders counts as `others`."""
    sizes, inner = _listing(str(folder))
    others = Counter(others=sum(size_of_run(path).total for path in inner))
    return RunSize(**(sizes + others))


def _listing(folder: str) -> tuple[Counter[str], tuple[str, ...]]:
    """Return a folder's file sizes by kind, and its subfolders; both are empty if it does not exist.

    A folder with an unchanged modification time is not listed again. Files of a run are written under another name and
    renamed, which changes that time. The log grows without changing it, so the log's size may be out of date.
    """
    try:
        changed_ns = os.stat(folder).st_mtime_ns
        settled = time.time_ns() - changed_ns > SETTLED_NS
        return _list(folder, changed_ns) if settled else _list.__wrapped__(folder, changed_ns)
    except OSError:
        return Counter(), ()


@lru_cache(maxsize=MOST_LISTINGS)
def _list(folder: str, changed_ns: int) -> tuple[Counter[str], tuple[str, ...]]:
    """List a folder, as of a modification time."""
    sizes, folders = Counter[str](), []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            kind = next((kind for start, kind in KINDS.items() if entry.name.startswith(start)), "others")
            with suppress(FileNotFoundError):  # renamed or deleted since then, which changes the folder's time
                sizes[kind] += entry.stat(follow_symlinks=False).st_size
    return sizes, tuple(folders)
