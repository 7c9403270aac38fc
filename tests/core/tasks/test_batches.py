"""The composition of batches."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from core.tasks.batches import (
    ClassBalancedSampler,
    EqualSharesSampler,
    RandomSampler,
    Sampler,
    make_sampler,
)
from tests.cases import each

LABELS = [0] * 37 + [1] * 11 + [2] * 5


def epoch(sampler: Sampler, number: int = 0) -> list[int]:
    first = number * sampler.steps_per_epoch + 1
    return [row for step in range(first, first + sampler.steps_per_epoch) for row in sampler.rows(step)]


@each("name", ["random", "class_balanced", "two_classes", "balanced"])
class TestEverySampler:
    def test_a_batch_depends_on_seed_and_step_alone(self, name: str) -> None:
        steps = list(range(1, 40))
        forward = make_sampler(name, LABELS, 8, seed=3)
        backward = make_sampler(name, LABELS, 8, seed=3)
        there = [forward.rows(step) for step in steps]
        back = [backward.rows(step) for step in reversed(steps)]
        assert there == back[::-1]
        assert there == [make_sampler(name, LABELS, 8, seed=3).rows(step) for step in steps]
        assert there[0] != make_sampler(name, LABELS, 8, seed=4).rows(1)

    def test_every_batch_is_full_and_an_epoch_has_as_many_steps_as_full_batches(self, name: str) -> None:
        sampler = make_sampler(name, LABELS, 8, seed=0)
        assert sampler.steps_per_epoch == len(LABELS) // 8
        assert make_sampler(name, LABELS, 1000, seed=0).steps_per_epoch == 1
        for step in range(1, 60):
            rows = sampler.rows(step)
            assert len(rows) == 8
            assert all(type(row) is int and 0 <= row < len(LABELS) for row in rows)


class TestRandom:
    def test_every_row_comes_once_an_epoch_in_another_order(self) -> None:
        sampler = RandomSampler(24, 8, seed=0)
        epochs = [epoch(sampler, number) for number in (0, 1, 5)]
        assert [sorted(rows) for rows in epochs] == [list(range(24))] * 3
        assert epochs[0] != epochs[1]

    def test_an_epoch_leaves_out_rows_that_fill_no_batch_but_none_forever(self) -> None:
        sampler = RandomSampler(53, 8, seed=0)
        epochs = [set(epoch(sampler, number)) for number in range(20)]
        assert {len(rows) for rows in epochs} == {48}
        assert set.union(*epochs) == set(range(53))


SHAPES = {
    "77 classes": [40] * 77,
    "2 classes": [70, 70],
    "12 classes": [30] * 12,
    "imbalance": [90, 40, 12, 5, 3],
    "one class": [80],
}


def labels_of(counts: list[int]) -> list[int]:
    return [label for label, count in enumerate(counts) for _ in range(count)]


def class_rows(labels: list[int], batch: list[int]) -> Counter[int]:
    return Counter(labels[row] for row in batch)


class TestClassBalanced:
    @each("counts", SHAPES.values())
    def test_a_batch_is_full_of_distinct_rows_and_no_class_with_another_row_comes_alone(
        self, counts: list[int]
    ) -> None:
        for batch_size in [2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64]:
            labels = labels_of(counts)
            sampler = ClassBalancedSampler(labels, batch_size, seed=0)
            for step in range(1, 160):
                batch = sampler.rows(step)
                assert len(batch) == len(set(batch)) == batch_size
                assert min(class_rows(labels, batch).values()) >= 2

    @each("batch_size", [4, 5, 8, 16, 31, 32, 64])
    @each("name", ["77 classes", "2 classes", "12 classes"])
    def test_as_many_classes_as_fit_have_shares_within_one_of_each_other(self, name: str, batch_size: int) -> None:
        counts, labels = SHAPES[name], labels_of(SHAPES[name])
        sampler = ClassBalancedSampler(labels, batch_size, seed=1)
        for step in range(1, 160):
            shares = class_rows(labels, sampler.rows(step))
            assert len(shares) == min(len(counts), batch_size // 2)
            assert max(shares.values()) - min(shares.values()) <= 1

    def test_two_classes_share_a_batch_and_every_class_meets_every_other(self) -> None:
        labels, met = labels_of([9, 30, 12, 50, 20]), Counter[tuple[int, ...]]()
        sampler = make_sampler("two_classes", labels, 16, seed=0)
        for step in range(1, 200):
            shares = class_rows(labels, sampler.rows(step))
            assert sorted(shares.values()) == [8, 8]
            met[tuple(sorted(shares))] += 1
        assert set(met) == set(combinations(range(5), 2))

    @each("batch_size", [2, 4, 8, 9, 32, 64])
    def test_the_classes_take_turns(self, batch_size: int) -> None:
        """Every class comes at least once per round. Over all rounds, extra positions are equal to within one."""
        labels = labels_of(SHAPES["77 classes"])
        sampler = ClassBalancedSampler(labels, batch_size, seed=0)
        batches = -(-77 // (batch_size // 2))
        turns = Counter[int]()
        for number in range(30):
            found = [class_rows(labels, sampler.rows(number * batches + batch)) for batch in range(1, batches + 1)]
            seen = Counter(label for shares in found for label in shares)
            assert set(seen) == set(range(77))
            turns += seen
        assert max(turns.values()) - min(turns.values()) <= 1

    def test_which_classes_meet_is_drawn_for_every_round(self) -> None:
        labels = labels_of(SHAPES["77 classes"])
        sampler = ClassBalancedSampler(labels, 32, seed=0)
        met = Counter[tuple[int, int]]()
        for step in range(1, 401):
            met.update(combinations(sorted(class_rows(labels, sampler.rows(step))), 2))
        pairs = 77 * 76 // 2
        assert len(met) == pairs
        assert max(met.values()) < 4 * met.total() / pairs

    @each(("classes", "batch_size"), [(2, 5), (3, 7), (12, 32), (5, 64)])
    def test_the_classes_take_turns_at_the_rows_that_do_not_divide_evenly(self, classes: int, batch_size: int) -> None:
        labels = labels_of([40] * classes)
        sampler = ClassBalancedSampler(labels, batch_size, seed=0)
        dealt = sum((class_rows(labels, sampler.rows(step)) for step in range(1, 10 * classes + 1)), Counter[int]())
        assert dealt == dict.fromkeys(range(classes), 10 * batch_size)

    @each(("counts", "batch_size"), [([40] * 77, 32), ([12, 12], 8), ([20, 8, 4], 12)])
    def test_every_row_of_a_class_comes_once_before_any_comes_again(self, counts: list[int], batch_size: int) -> None:
        labels = labels_of(counts)
        sampler = ClassBalancedSampler(labels, batch_size, seed=0)
        dealt: list[list[int]] = [[] for _ in counts]
        for step in range(1, 1500):
            for row in sampler.rows(step):
                dealt[labels[row]].append(row)
        for mine, count in zip(dealt, counts, strict=True):
            for start in range(0, len(mine) - count, count):
                assert len(set(mine[start : start + count])) == count

    @each(("counts", "shares"), [([37, 11, 5], {0: 16, 1: 11, 2: 5}), ([50, 1, 1], {0: 6, 1: 1, 2: 1})])
    def test_a_small_class_gives_all_it_has_and_the_others_fill_up(
        self, counts: list[int], shares: dict[int, int]
    ) -> None:
        labels = labels_of(counts)
        sampler = ClassBalancedSampler(labels, sum(shares.values()), seed=0)
        for step in range(1, 60):
            assert class_rows(labels, sampler.rows(step)) == shares

    @each("batch_size", [2, 5, 8, 16, 30])
    def test_classes_too_small_to_fill_a_batch_are_joined_by_others(self, batch_size: int) -> None:
        labels = labels_of([1] * 20 + [2] * 10)
        sampler = ClassBalancedSampler(labels, batch_size, seed=0)
        seen = set[int]()
        for step in range(1, 160):
            batch = sampler.rows(step)
            assert len(batch) == len(set(batch)) == batch_size
            seen |= set(batch)
        assert seen == set(range(40))

    def test_a_batch_of_everything_is_everything(self) -> None:
        assert sorted(ClassBalancedSampler(LABELS, len(LABELS), seed=0).rows(5)) == list(range(len(LABELS)))
        assert sorted(ClassBalancedSampler(LABELS, 1000, seed=0).rows(5)) == list(range(len(LABELS)))

    def test_labels_need_not_count_from_zero(self) -> None:
        sampler = ClassBalancedSampler([7, 7, 7, -1, -1], 4, seed=0)
        assert sum(row < 3 for row in sampler.rows(1)) == 2


class TestEqualShares:
    """The sampler of earlier runs, which must resume on their curve."""

    def test_its_batches_are_those_of_earlier_runs(self) -> None:
        sampler = make_sampler("balanced", LABELS, 8, seed=3)
        assert [sampler.rows(step) for step in (1, 2, 50)] == [
            [29, 36, 12, 44, 41, 47, 52, 48],
            [31, 28, 17, 38, 39, 49, 50, 51],
            [23, 22, 20, 43, 41, 49, 50, 52],
        ]

    @each("batch_size", [1, 2, 3, 4, 7, 9, 16])
    def test_the_classes_of_a_batch_are_within_one_of_each_other(self, batch_size: int) -> None:
        sampler = EqualSharesSampler(LABELS, batch_size, seed=0)
        for step in range(1, 60):
            counts = Counter(LABELS[row] for row in sampler.rows(step))
            sizes = [counts[label] for label in (0, 1, 2)]
            assert max(sizes) - min(sizes) <= 1
            assert sum(sizes) == batch_size
