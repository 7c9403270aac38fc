"""The cell that a browser says was pressed."""

from __future__ import annotations

from typing import Any

import pytest

from pages.ui.explore.confusion import checked_cell


@pytest.mark.parametrize("value", [[0, 2], [2, 0], (1, 1)])
def test_a_cell_is_a_label_and_a_prediction(value: Any) -> None:
    assert checked_cell(value, 3) == tuple(value)


@pytest.mark.parametrize(
    "value", [None, [], [1], [1, 2, 0], [3, 0], [0, 3], [-1, 0], [0, 1.0], [True, False], ["0", "1"], "01", {"0": 1}, 7]
)
def test_nonsense_is_no_cell(value: Any) -> None:
    assert checked_cell(value, 3) is None
