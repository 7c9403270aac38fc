"""The exact rows of a run, stored and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import TaskError
from core.tasks.dataset import Split, TaskData, read_data, write_data
from core.tasks.rows import Rows, write_rows

SINGLE = TaskData(
    "pets, and 「more」",
    ("b", "a", "never seen"),  # the order of classes belongs to the run and is not alphabetical
    Split(("x", "=1+1", ' "q" \n,'), (1, 0, 1)),
    Split(("y",), (0,)),
    Split(("z", "x"), (1, 1)),
)
PAIRS = TaskData(
    "pairs",
    ("no", "yes"),
    Split(("x", "x"), (1, 0), ("k", "l")),
    Split(("y",), (0,), ("m",)),
    Split(("z",), (1,), ("n",)),
)


@pytest.mark.parametrize("data", [SINGLE, PAIRS], ids=["texts", "pairs"])
def test_every_row_comes_back_in_its_place(tmp_path: Path, data: TaskData) -> None:
    write_data(tmp_path / "rows" / "kept.parquet", data)
    assert read_data(tmp_path / "rows" / "kept.parquet", data.content_hash) == data


def test_other_rows_are_refused(tmp_path: Path) -> None:
    write_data(tmp_path / "kept.parquet", SINGLE)
    with pytest.raises(TaskError, match="does not hold the rows of this run"):
        read_data(tmp_path / "kept.parquet", PAIRS.content_hash)


def test_a_file_that_keeps_no_run_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / "kept.parquet", Rows(("x",), ("a",)), {})
    with pytest.raises(TaskError, match="has no rows of a run"):
        read_data(tmp_path / "kept.parquet", SINGLE.content_hash)
