"""Files are whole or not there, and what a killed process left is taken away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.artifacts.array_files import read_about, read_array, write_arrays
from core.errors import StoreError

PLACES = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "maps" / "0000001.safetensors"
    write_arrays(path, {"points": PLACES.T}, {"fitted": True})
    np.testing.assert_array_equal(read_array(path, "points"), PLACES.T)
    assert read_about(path) == {"fitted": True}
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_what_a_killed_process_left_of_a_file_goes_with_its_next_writing(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = tmp_path / f".0000001.safetensors.{int(gone.stdout)}.0123abcd.partial"
    left.touch()
    write_arrays(tmp_path / "0000001.safetensors", {"points": PLACES}, {})
    assert not left.exists()


def test_the_folder_of_a_deleted_run_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="could not be written"):
        write_arrays(tmp_path / "gone" / "maps" / "0000001.safetensors", {"points": PLACES}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"damaged", b"\xff" * 64])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "0000001.safetensors"
    path.write_bytes(content)
    assert read_about(path) is None
    assert read_array(path, "points") is None
