"""Disk usage of runs."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Dropped = Literal["snapshots", "weights"]
# File systems record times in ticks, so a folder modified more recently than this may change without a new time.
SETTLED_NS = 1_000_000_000
CHECKPOINT, SNAPSHOT = "checkpoint.", "snapshot-"
FRAMES = ("frame-", "tokens.", "predictions-")


@dataclass(frozen=True, slots=True)
class RunSize:
    """Disk usage of a run, in bytes.

    Attributes:
        weights: the checkpoint; for a finished run, its final weights.
        snapshots: copies of the weights at earlier steps.
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


@dataclass(frozen=True, slots=True)
class _Listed:
    """Listing of one folder: file sizes by kind, and subfolders.

    `settled` is True if any later change will show in the modification time.
    """

    changed_ns: int
    settled: bool
    sizes: Counter[str]
    folders: tuple[str, ...]


class FolderSizes:
    """Cached sizes of run folders. A folder with an unchanged modification time is not listed again.

    Files of a run are written under another name and renamed, which changes the modification time of the folder. The
    log grows without changing it, so the log's size may be out of date.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Listed] = {}

    def of_runs(self, folder: Path) -> dict[str, RunSize]:
        """Return the size of every run folder in `folder`, by run id."""
        runs = self._listed(str(folder))
        return {os.path.basename(path): self._of(path) for path in runs.folders} if runs else {}

    def of_run(self, folder: Path) -> RunSize:
        return self._of(str(folder))

    def _of(self, folder: str) -> RunSize:
        listed = self._listed(folder)
        if listed is None:
            return RunSize()
        own = listed.sizes
        others = sum(self._total(inner) for inner in listed.folders)
        return RunSize(own["weights"], own["snapshots"], own["frames"], own["others"] + others)

    def _total(self, folder: str) -> int:
        listed = self._listed(folder)
        return 0 if listed is None else listed.sizes.total() + sum(self._total(inner) for inner in listed.folders)

    def _listed(self, folder: str) -> _Listed | None:
        """List a folder, from the cache if possible; None if it does not exist."""
        try:
            changed_ns = os.stat(folder).st_mtime_ns
            known = self._known.get(folder)
            if known is None or not known.settled or known.changed_ns != changed_ns:
                known = self._known[folder] = _list(folder, changed_ns)
        except OSError:
            self._known.pop(folder, None)
            return None
        return known


def _list(folder: str, changed_ns: int) -> _Listed:
    settled = time.time_ns() - changed_ns > SETTLED_NS
    sizes: Counter[str] = Counter()
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            try:
                sizes[_kind(entry.name)] += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                settled = False  # renamed or deleted since it was listed
    return _Listed(changed_ns, settled, sizes, tuple(folders))


def _kind(name: str) -> str:
    if name.startswith(CHECKPOINT):
        return "weights"
    if name.startswith(SNAPSHOT):
        return "snapshots"
    return "frames" if name.startswith(FRAMES) else "others"
