from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.atomic import SUFFIX, atomic_write, remove_partial_files


def test_a_file_is_there_whole_once_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert (path.read_text(), partial.parent) == ("old", tmp_path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def write_half() -> None:
        with atomic_write(path) as partial:
            partial.write_text("half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "table.csv"):
        pass


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with atomic_write(path) as first, atomic_write(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"


def test_what_a_killed_process_left_of_this_file_is_removed(tmp_path: Path) -> None:
    code = "import os, sys, pathlib; sys.path.insert(0, '.')\nfrom core.atomic import atomic_write\n"
    code += "with atomic_write(pathlib.Path(sys.argv[1])) as partial:\n    partial.touch()\n    os._exit(9)"
    for name in ("0000001.safetensors", "0000002.safetensors"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=False)
    at_work = tmp_path / f".0000001.safetensors.{os.getppid()}.0123abcd{SUFFIX}"
    at_work.touch()
    remove_partial_files(tmp_path / "0000001.safetensors")
    left = {path.name.rsplit(".", 3)[0] for path in tmp_path.iterdir()}
    assert (at_work.exists(), left) == (True, {".0000001.safetensors", ".0000002.safetensors"})
    assert len(list(tmp_path.iterdir())) == 2
