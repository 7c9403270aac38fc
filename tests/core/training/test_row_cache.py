"""A bounded cache of values computed once per row, in groups that depend only on the sampler."""

from __future__ import annotations

from collections.abc import Sequence

from core.training.row_cache import RowCache
from tests.cases import each

BATCHES = {1: [4, 2], 2: [0, 4], 3: [1, 3], 4: [2, 0], 5: [3, 5], 6: [5, 4]}


class Recorded:
    """A cache that records the computed groups. Each item names its group."""

    def __init__(self, batches: dict[int, list[int]] | None = None, limit: int = 100, size: int = 10) -> None:
        self.groups: list[tuple[int, ...]] = []
        self.batches = batches or BATCHES
        self.kept = RowCache(self.batches.__getitem__, self.compute, lambda _: size, limit)

    def compute(self, rows: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
        self.groups.append(tuple(rows))
        return [(row, tuple(rows)) for row in rows]

    def items(self, step: int) -> list[tuple[int, tuple[int, ...]]]:
        return self.kept.items(step, self.batches[step])


def test_every_row_is_computed_once_at_its_first_appearance() -> None:
    recorded = Recorded()
    for step, rows in BATCHES.items():
        assert [row for row, _ in recorded.items(step)] == rows
    assert recorded.groups == [(4, 2), (0,), (1, 3), (5,)]


@each("start", [2, 4, 6])
@each("limit", [100, 30, 0])
def test_a_run_that_begins_later_computes_the_same_rows_together(start: int, limit: int) -> None:
    """An item computed in another group could differ in its last bit."""
    whole, resumed = Recorded(limit=limit), Recorded(limit=limit)
    expected = {step: whole.items(step) for step in BATCHES}
    for step in range(start, 7):
        assert resumed.items(step) == expected[step]


def test_a_group_is_left_alone_until_one_of_its_rows_is_needed() -> None:
    resumed = Recorded()
    resumed.items(6)
    assert resumed.groups == [(4, 2), (5,)]


def test_rows_beyond_the_bound_are_computed_at_every_step() -> None:
    recorded = Recorded(limit=30)
    for step, rows in BATCHES.items():
        assert [row for row, _ in recorded.items(step)] == rows
    # Three rows fit: 4, 2 and 0.
    assert recorded.groups == [(4, 2), (0,), (1, 3), (3, 5), (5,)]
    assert len(recorded.kept._kept) == 3


def test_a_full_cache_rejects_even_a_smaller_row() -> None:
    sizes = {0: 8, 1: 8, 2: 1, 3: 1}
    groups: list[list[int]] = []

    def compute(rows: Sequence[int]) -> list[int]:
        groups.append(list(rows))
        return list(rows)

    kept = RowCache(lambda step: [step - 1], compute, sizes.__getitem__, 10)
    for step in (1, 2, 3, 4, 3, 1):
        kept.items(step, [step - 1])
    assert groups == [[0], [1], [2], [3], [2]]


def test_a_row_that_stands_twice_in_a_batch_is_computed_once() -> None:
    for limit in (100, 0):
        recorded = Recorded({1: [3, 1, 3, 3]}, limit)
        assert [row for row, _ in recorded.items(1)] == [3, 1, 3, 3]
        assert recorded.groups == [(3, 1)]
