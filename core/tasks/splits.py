"""Stratified, seeded, nested samples: the first 20 rows of an order are among its first 100."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def stratified_order(labels: Sequence[int], seed: int) -> list[int]:
    """An order of the rows of which every prefix keeps the class shares as nearly as it can.

    The j-th row of a class of n, in seeded random order, stands at (j + ½)/n; the first row of every class stands
    in front, so that a prefix of at least C rows holds all C classes.
    """
    rng = np.random.default_rng(seed)
    values = np.asarray(labels)
    places: list[tuple[float, int, int]] = []
    for label in np.unique(values):
        rows = rng.permutation(np.flatnonzero(values == label))
        for j, row in enumerate(rows):
            places.append((0.0 if j == 0 else (j + 0.5) / len(rows), int(label), int(row)))
    return [row for _, _, row in sorted(places)]


def validation_rows(rows: int) -> int:
    """Rows of a training file that become the validation split: a fifth, 120 where three tenths allow, 500 at most."""
    return min(500, max(rows // 5, min(120, rows * 3 // 10)))


def held_out_test_rows(rows: int) -> int:
    """How many rows are held out for the test when no test file is given: a fifth, 1,000 at most."""
    return min(1000, rows // 5)
