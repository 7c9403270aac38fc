"""The cell that a browser reports as pressed."""

from __future__ import annotations

from typing import Any

from pages.ui.tables import checked_cell
from tests.cases import each


@each("value", [[0, 2], [2, 0], (1, 1)])
def test_a_cell_is_a_row_and_a_column(value: Any) -> None:
    assert checked_cell(value, 3, 3) == tuple(value)


@each(
    "value", [None, [], [1], [1, 2, 0], [3, 0], [0, 3], [-1, 0], [0, 1.0], [True, False], ["0", "1"], "01", {"0": 1}, 7]
)
def test_nonsense_is_no_cell(value: Any) -> None:
    assert checked_cell(value, 3, 3) is None


def test_rows_and_columns_are_counted_apart() -> None:
    assert checked_cell([1, 4], 2, 5) == (1, 4)
    assert checked_cell([4, 1], 2, 5) is None
