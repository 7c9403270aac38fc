"""Stratified, seeded, nested orders and splits: the first 20 rows of an order are among its first 100."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from core.tasks.survey import Texts, folded

# Rows with the same text stay together only up to this fraction of all rows.
LARGEST_GROUP = 0.05


def stratified_order(labels: Sequence[int], seed: int, groups: Sequence[int] | None = None) -> list[int]:
    """Return an order of the rows in which every prefix keeps the class proportions as closely as possible.

    The j-th of n groups with the same labels, in seeded random order, is placed at (j + ½)/n, with its rows in
    sequence. The first row of every class is then moved to the front, so that a prefix of at least C rows holds all C
    classes.

    Args:
        groups: group number of each row; rows of a group stay together. With None, every row is a separate group.
    """
    if groups is None:
        order = _interleaved(np.asarray(labels, dtype=np.int64), seed)
    else:
        units = list(_members(groups, range(len(groups))).values())
        kinds = [tuple(sorted(labels[row] for row in unit)) for unit in units]
        number = {kind: i for i, kind in enumerate(sorted(set(kinds)))}
        order = [row for unit in _interleaved(np.array([number[kind] for kind in kinds]), seed) for row in units[unit]]
    first: dict[int, int] = {}
    for row in order:
        first.setdefault(labels[row], row)
    front = [first[label] for label in sorted(first)]
    in_front = set(front)
    return front + [row for row in order if row not in in_front]


def _members(groups: Sequence[int], order: Iterable[int]) -> dict[int, list[int]]:
    """Return the rows of every group, in the order of the groups' first rows."""
    members: dict[int, list[int]] = {}
    for row in order:
        members.setdefault(groups[row], []).append(row)
    return members


def _interleaved(kinds: np.typing.NDArray[np.int64], seed: int) -> list[int]:
    """Return an order of the units in which each kind is spread evenly. Ties are ordered by kind, then by unit."""
    rng = np.random.default_rng(seed)
    places = np.empty(len(kinds))
    for kind in np.unique(kinds):
        units = rng.permutation(np.flatnonzero(kinds == kind))
        places[units] = (np.arange(len(units)) + 0.5) / len(units)
    order: list[int] = np.lexsort((np.arange(len(kinds)), kinds, places)).tolist()
    return order


def text_groups(texts: Sequence[Texts]) -> list[int] | None:
    """Return a number per row, equal for rows with the same text (of a pair, the first); None if no text repeats.

    A premise and its hypotheses, and repeated rows, then go into one split. A text that occurs in many rows would leave
    nothing for the other splits, so each of its rows is a separate group.
    """
    number: dict[Texts, int] = {}
    groups = [number.setdefault(folded(text), len(number)) for text in texts]
    if len(number) == len(texts):
        return None
    too_large = {group for group, rows in Counter(groups).items() if rows > max(2, LARGEST_GROUP * len(texts))}
    if len(too_large) == len(number):
        return None
    return [len(number) + row if group in too_large else group for row, group in enumerate(groups)]


def held_out(labels: Sequence[int], size: int, seed: int, groups: Sequence[int] | None = None) -> list[int]:
    """Return about `size` rows to hold out, in stratified order. Groups stay whole, and every class keeps a row."""
    order = stratified_order(labels, seed, groups)
    if groups is None:
        last = {labels[row]: row for row in order}
        staying = set(last.values())
        return [row for row in order if row not in staying][:size]
    left = Counter(labels)
    taken: list[int] = []
    for unit in _members(groups, order).values():
        wanted = Counter(labels[row] for row in unit)
        if len(taken) + len(unit) <= size and all(left[label] > count for label, count in wanted.items()):
            taken += unit
            left -= wanted
    return taken


def validation_rows(rows: int) -> int:
    """Return the number of rows of a training file that become the validation split.

    This is a fifth of the rows, but at least 120 (or three tenths of the rows, if that is less) and at most 500.
    """
    return min(500, max(rows // 5, min(120, rows * 3 // 10)))


def held_out_test_rows(rows: int) -> int:
    """Return the number of test rows held out when no test file is given: a fifth, at most 1,000."""
    return min(1000, rows // 5)
