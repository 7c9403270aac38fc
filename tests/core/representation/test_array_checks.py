"""What the measures refuse, and with which sentence."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.array_checks import checked_labels, checked_rows
from tests.cases import each


def test_single_precision_stays_and_everything_else_becomes_double() -> None:
    single = np.ones((2, 3), np.float32)
    assert checked_rows(single) is single
    for given in ([[1, 2]], np.ones((1, 2), np.float16), np.ones((1, 2), np.int64)):
        assert checked_rows(given).dtype == np.float64


@each("given", [[1.0, 2.0], 3.0, np.ones((2, 2, 2))])
def test_other_ranks_are_refused_by_name_and_shape(given: object) -> None:
    with pytest.raises(ValueError, match=r"^points = shape \[.*\]: expected a shape \[N, d\]$"):
        checked_rows(given, "points")  # type: ignore[arg-type]


@each("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"embeddings = {bad}: expected finite numbers"):
        checked_rows([[1.0, 2.0], [bad, 0.0]])


@each("given", [[0, 1, -1], (0.0, 1.0, -1.0), np.array([0, 1, -1], np.int8)])
def test_whole_numbers_are_labels(given: object) -> None:
    labels = checked_labels(given, 3)  # type: ignore[arg-type]
    assert labels.dtype == np.int64
    assert labels.tolist() == [0, 1, -1]


@each(("given", "named"), [([0, 1.5], "1.5"), ([np.nan, 1.0], "nan"), (["a", "b"], "'a'")])
def test_others_are_not(given: list[object], named: str) -> None:
    with pytest.raises(ValueError, match=f"labels = {named}: expected whole numbers"):
        checked_labels(given, 2)  # type: ignore[arg-type]


def test_every_example_has_one_label() -> None:
    with pytest.raises(ValueError, match=r"previous = shape \[2\]: expected one for each example, \[3\]"):
        checked_labels([0, 1], 3, "previous")
