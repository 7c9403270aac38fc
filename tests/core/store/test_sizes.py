"""Disk usage of runs: the sum of their files, whichever process wrote them and when."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from core.store import Store, sizes
from core.store.sizes import RunSize, size_of_run, size_text, sizes_of_runs
from core.weight_files import checkpoint_path, snapshot_path

# Weights have the names that training gives them.
FILES = {
    checkpoint_path(Path()).name: 1000,
    snapshot_path(Path(), 11).name: 200,
    snapshot_path(Path(), 30).name: 300,
    "frame-0000001.safetensors": 40,
    "tokens.json": 7,
    "log.txt": 3,
    "maps-1/umap/0000001.safetensors": 20,
    "inspected/ab.safetensors": 5,
}


def fill(folder: Path, files: dict[str, int] = FILES) -> None:
    for name, size in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * size)


def settle(folder: Path) -> None:
    """Date all files back, so that nothing changed recently."""
    for path, _, _ in os.walk(folder):
        os.utime(path, (time.time() - 60, time.time() - 60))


def walked(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_every_file_counts_once_under_its_kind(tmp_path: Path) -> None:
    fill(tmp_path / "run")
    size = size_of_run(tmp_path / "run")
    assert size == RunSize(weights=1000, snapshots=500, frames=47, others=28)
    assert size.total == walked(tmp_path / "run")


def test_a_folder_that_has_not_changed_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "run")
    settle(tmp_path)
    once, listed, scan = sizes_of_runs(tmp_path), [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: listed.append(folder) or scan(folder))
    assert sizes_of_runs(tmp_path) == once
    assert listed == []
    fill(tmp_path / "run" / "inspected", {"cd.safetensors": 11})
    total = sizes_of_runs(tmp_path)["run"].total
    assert listed == [str(tmp_path / "run" / "inspected")]
    assert total == walked(tmp_path / "run")


def test_a_change_right_after_the_first_look_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems round dates to ticks, so a second change within one tick is invisible."""
    monkeypatch.setattr(sizes, "SETTLED_NS", 3_600 * 10**9)
    fill(tmp_path / "run")
    moment = os.stat(tmp_path / "run")
    size_of_run(tmp_path / "run")
    fill(tmp_path / "run", {"frame-0000002.safetensors": 17})
    os.utime(tmp_path / "run", ns=(moment.st_atime_ns, moment.st_mtime_ns))
    assert size_of_run(tmp_path / "run").total == walked(tmp_path / "run")


def test_a_missing_run_takes_no_space(tmp_path: Path) -> None:
    assert size_of_run(tmp_path / "none") == RunSize()
    assert sizes_of_runs(tmp_path / "none") == {}
    fill(tmp_path / "run")
    assert list(sizes_of_runs(tmp_path)) == ["run"]
    (tmp_path / "run").rename(tmp_path.parent / "elsewhere")
    assert size_of_run(tmp_path / "run") == RunSize()
    assert sizes_of_runs(tmp_path) == {}


def test_the_store_counts_deleted_runs_until_their_files_are_freed(store: Store) -> None:
    (store.folder / "files" / "gone").mkdir(parents=True)
    fill(store.folder / "files" / "gone", {"checkpoint.safetensors": 9})
    assert store.sizes() == {"gone": RunSize(weights=9)}


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0.0 MB"),
        (300_000, "0.3 MB"),
        (2**20 * 9.4, "9.4 MB"),
        (2**20 * 285.4, "285 MB"),
        (2**20 * 999, "999 MB"),
        (2**30, "1.0 GB"),
        (2**30 * 1234.5, "1,234.5 GB"),
    ],
)
def test_bytes_read_as_people_write_them(size: float, text: str) -> None:
    assert size_text(size) == text
