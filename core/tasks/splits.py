"""Stratified, seeded, nested orders and splits: the first 20 rows of an order are among its first 100."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

# A group that holds more of the rows than this is no reason to keep rows together.
LARGEST_GROUP = 0.05


def stratified_order(labels: Sequence[int], seed: int, groups: Sequence[int] | None = None) -> list[int]:
    """An order of the rows of which every prefix keeps the class shares as nearly as it can.

    The j-th group of n with the same labels, in seeded random order, stands at (j + ½)/n, its rows one after the other;
    the first row of every class is moved to the front, so that a prefix of at least C rows holds all C classes.

    Args:
        groups: a number per row; rows that share one stay together. None: every row is a group of its own.
    """
    units = _units(groups, len(labels))
    kinds = [tuple(sorted(labels[row] for row in unit)) for unit in units]
    order = [row for number in _interleaved(kinds, seed) for row in units[number]]
    first: dict[int, int] = {}
    for row in order:
        first.setdefault(labels[row], row)
    front = [first[label] for label in sorted(first)]
    in_front = set(front)
    return front + [row for row in order if row not in in_front]


def _units(groups: Sequence[int] | None, rows: int) -> list[list[int]]:
    if groups is None:
        return [[row] for row in range(rows)]
    members: dict[int, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    return list(members.values())


def _interleaved(kinds: Sequence[tuple[int, ...]], seed: int) -> list[int]:
    """Numbers of the units, each kind spread evenly."""
    rng = np.random.default_rng(seed)
    of_kind: dict[tuple[int, ...], list[int]] = {}
    for number, kind in enumerate(kinds):
        of_kind.setdefault(kind, []).append(number)
    places: list[tuple[float, tuple[int, ...], int]] = []
    for kind in sorted(of_kind):
        numbers = rng.permutation(of_kind[kind])
        places += [((j + 0.5) / len(numbers), kind, int(number)) for j, number in enumerate(numbers)]
    return [number for _, _, number in sorted(places)]


def text_groups(texts: Sequence[Hashable]) -> list[int] | None:
    """A number per row, equal where the text (of a pair, the first) is; None where no text repeats.

    A premise and its hypotheses, and rows that stand twice, then go into one split. Where one text fills a large part
    of the rows, keeping its rows together would leave nothing for the other splits, so None is given there too.
    """
    number: dict[Hashable, int] = {}
    groups = [number.setdefault(text, len(number)) for text in texts]
    if len(number) == len(texts):
        return None
    largest = Counter(groups).most_common(1)[0][1]
    return groups if largest <= max(2, LARGEST_GROUP * len(texts)) else None


def held_out(labels: Sequence[int], size: int, seed: int, groups: Sequence[int] | None = None) -> list[int]:
    """About `size` rows to hold out, in stratified order; groups stay whole, and every class keeps a row behind."""
    order = stratified_order(labels, seed, groups)
    members = dict(enumerate([row] for row in order)) if groups is None else _members(groups, order)
    left = Counter(labels)
    taken: list[int] = []
    for unit in members.values():
        wanted = Counter(labels[row] for row in unit)
        if len(taken) + len(unit) <= size and all(left[label] > count for label, count in wanted.items()):
            taken += unit
            left -= wanted
    return taken


def _members(groups: Sequence[int], order: Sequence[int]) -> dict[int, list[int]]:
    """The rows of every group, groups and rows as they come in an order."""
    members: dict[int, list[int]] = {}
    for row in order:
        members.setdefault(groups[row], []).append(row)
    return members


def validation_rows(rows: int) -> int:
    """Rows of a training file that become the validation split: a fifth, 120 where three tenths allow, 500 at most."""
    return min(500, max(rows // 5, min(120, rows * 3 // 10)))


def held_out_test_rows(rows: int) -> int:
    """How many rows are held out for the test when no test file is given: a fifth, 1,000 at most."""
    return min(1000, rows // 5)
