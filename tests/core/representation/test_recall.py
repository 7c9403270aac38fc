"""Recall of hand-made predictions, against counts by eye and the Wilson formula."""

from __future__ import annotations

import math

import pytest

from core.representation.recall import class_groups, is_imbalanced, recall
from tests.cases import each

LABELS = [0, 0, 0, 0, 1, 1, 1, 2]
PREDICTED = [0, 0, 0, 2, 1, 0, 0, 2]


def wilson(right: int, rows: int) -> tuple[float, float]:
    z, p = 1.959963984540054, right / rows
    middle, half = p + z * z / 2 / rows, z * math.sqrt(p * (1 - p) / rows + (z / 2 / rows) ** 2)
    return (middle - half) / (1 + z * z / rows), (middle + half) / (1 + z * z / rows)


@each(("classes", "right", "rows"), [([0], 3, 4), ([1], 1, 3), ([2], 1, 1), ([0, 1], 4, 7), ([1, 2], 2, 4)])
def test_recall_is_the_share_of_the_rows_of_a_class(classes: list[int], right: int, rows: int) -> None:
    found = recall(LABELS, PREDICTED, classes)
    assert (found.rows, found.share) == (rows, right / rows)
    assert (found.low, found.high) == pytest.approx(wilson(right, rows))


def test_a_class_without_rows_has_no_recall() -> None:
    found = recall(LABELS, PREDICTED, [3])
    assert found.rows == 0
    assert all(math.isnan(value) for value in found[1:])


@each(
    ("counts", "groups"),
    [
        ((480, 9), {"head": (0,), "tail": (1,)}),
        ((7, 70, 15), {"head": (1,), "middle": (2,), "tail": (0,)}),
        ((70, 19, 5, 1), {"head": (0,), "middle": (1, 2), "tail": (3,)}),
        ((3, 5, 8, 13, 22, 35), {"head": (5, 4), "middle": (3, 2), "tail": (1, 0)}),
        ((10, 10, 10), {"head": (0,), "middle": (1,), "tail": (2,)}),
        ((10,), {}),
    ],
)
def test_groups_are_thirds_of_the_classes_by_training_rows(
    counts: tuple[int, ...], groups: dict[str, tuple[int, ...]]
) -> None:
    assert class_groups(counts) == groups


def test_twice_the_rows_of_the_smallest_class_are_imbalanced() -> None:
    assert [is_imbalanced(counts) for counts in ((20, 10), (19, 10), (5, 0), (7,))] == [True, False, True, False]
