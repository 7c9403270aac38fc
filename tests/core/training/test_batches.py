"""Which rows meet in a batch, and what the audit says of it beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from core.training.batches import (
    BalancedSampler,
    RandomSampler,
    Sampler,
    anchors_without_positive,
    expected_positives,
    make_sampler,
)

LABELS = [0] * 37 + [1] * 11 + [2] * 5


def epoch(sampler: Sampler, number: int = 0) -> list[int]:
    first = number * sampler.steps_per_epoch + 1
    return [row for step in range(first, first + sampler.steps_per_epoch) for row in sampler.rows(step)]


@pytest.mark.parametrize("name", ["random", "balanced"])
class TestEverySampler:
    def test_a_batch_depends_on_seed_and_step_alone(self, name: str) -> None:
        steps = list(range(1, 40))
        forward = make_sampler(name, LABELS, 8, seed=3)
        backward = make_sampler(name, LABELS, 8, seed=3)
        there = [forward.rows(step) for step in steps]
        back = [backward.rows(step) for step in reversed(steps)]
        assert there == back[::-1]
        assert there == [make_sampler(name, LABELS, 8, seed=3).rows(step) for step in steps]

    def test_another_seed_gives_other_batches(self, name: str) -> None:
        one, other = (make_sampler(name, LABELS, 8, seed=seed) for seed in (0, 1))
        assert one.rows(1) != other.rows(1)

    def test_every_batch_is_full_and_of_plain_row_numbers(self, name: str) -> None:
        sampler = make_sampler(name, LABELS, 8, seed=0)
        for step in range(1, 60):
            rows = sampler.rows(step)
            assert len(rows) == 8
            assert all(type(row) is int and 0 <= row < len(LABELS) for row in rows)

    def test_an_epoch_has_as_many_steps_as_full_batches(self, name: str) -> None:
        assert make_sampler(name, LABELS, 8, seed=0).steps_per_epoch == len(LABELS) // 8
        assert make_sampler(name, LABELS, 1000, seed=0).steps_per_epoch == 1


class TestRandom:
    @pytest.mark.parametrize("number", [0, 1, 5])
    def test_every_row_comes_once_an_epoch(self, number: int) -> None:
        assert sorted(epoch(RandomSampler(24, 8, seed=0), number)) == list(range(24))

    def test_no_row_comes_twice_in_an_epoch_that_leaves_some_out(self) -> None:
        rows = epoch(RandomSampler(53, 8, seed=0))
        assert len(set(rows)) == len(rows) == 48

    def test_epochs_have_orders_of_their_own(self) -> None:
        sampler = RandomSampler(24, 8, seed=0)
        assert epoch(sampler, 0) != epoch(sampler, 1)

    def test_every_row_comes_sooner_or_later(self) -> None:
        sampler = RandomSampler(53, 8, seed=0)
        assert {row for number in range(20) for row in epoch(sampler, number)} == set(range(53))


class TestBalanced:
    @pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 7, 9, 16])
    def test_the_classes_of_a_batch_are_within_one_of_each_other(self, batch_size: int) -> None:
        sampler = BalancedSampler(LABELS, batch_size, seed=0)
        for step in range(1, 60):
            counts = Counter(LABELS[row] for row in sampler.rows(step))
            sizes = [counts[label] for label in (0, 1, 2)]
            assert max(sizes) - min(sizes) <= 1
            assert sum(sizes) == batch_size

    @pytest.mark.parametrize("batch_size", [4, 7])
    def test_the_classes_take_turns_at_the_extra_row(self, batch_size: int) -> None:
        sampler = BalancedSampler(LABELS, batch_size, seed=0)
        counts = Counter(LABELS[row] for step in range(1, 31) for row in sampler.rows(step))
        assert counts == dict.fromkeys((0, 1, 2), 10 * batch_size)

    def test_every_row_of_a_class_comes_once_before_any_comes_again(self) -> None:
        sampler = BalancedSampler(LABELS, 9, seed=0)
        dealt = [row for step in range(1, 200) for row in sampler.rows(step)]
        for label in (0, 1, 2):
            members = [row for row, y in enumerate(LABELS) if y == label]
            mine = [row for row in dealt if LABELS[row] == label]
            for start in range(0, len(mine) - len(members), len(members)):
                assert sorted(mine[start : start + len(members)]) == members

    def test_labels_need_not_count_from_zero(self) -> None:
        sampler = BalancedSampler([7, 7, -1, -1], 2, seed=0)
        assert {row < 2 for row in sampler.rows(1)} == {True, False}


def counted(labels: Sequence[int], batch_size: int, sampler: str, steps: int, views: int) -> tuple[list[float], ...]:
    """As `measured`, over all views of every text, one pair of vectors at a time."""
    made = make_sampler(sampler, labels, batch_size, seed=0)
    anchors, positives, lonely = Counter[int](), Counter[int](), Counter[int]()
    for step in range(1, steps + 1):
        vectors = [(row, view) for row in made.rows(step) for view in range(views)]
        for i, (row, _) in enumerate(vectors):
            found = sum(labels[other] == labels[row] for j, (other, _) in enumerate(vectors) if j != i)
            anchors[labels[row]] += 1
            positives[labels[row]] += found
            lonely[labels[row]] += found == 0
    classes = sorted(anchors)
    return [positives[c] / anchors[c] for c in classes], [lonely[c] / anchors[c] for c in classes]


@pytest.mark.parametrize("views", [1, 2, 3])
class TestAuditOfViews:
    @pytest.mark.parametrize(("counts", "batch_size"), [((30, 10), 4), ((9, 9, 6), 6)])
    def test_of_random_batches(self, counts: tuple[int, ...], batch_size: int, views: int) -> None:
        labels = [label for label, count in enumerate(counts) for _ in range(count)]
        positives, lonely = counted(labels, batch_size, "random", 4000, views)
        assert expected_positives(counts, batch_size, "random", views) == pytest.approx(positives, abs=0.08 * views)
        assert anchors_without_positive(counts, batch_size, "random", views) == pytest.approx(lonely, abs=0.04)

    @pytest.mark.parametrize(("classes", "batch_size"), [(2, 4), (3, 3), (3, 5), (5, 4)])
    def test_of_balanced_batches(self, classes: int, batch_size: int, views: int) -> None:
        labels = [label for label in range(classes) for _ in range(60)]
        positives, lonely = counted(labels, batch_size, "balanced", 60, views)
        counts = [60] * classes
        assert expected_positives(counts, batch_size, "balanced", views) == pytest.approx(positives)
        assert anchors_without_positive(counts, batch_size, "balanced", views) == pytest.approx(lonely)

    def test_a_batch_of_one_has_its_own_other_views(self, views: int) -> None:
        for sampler in ("random", "balanced"):
            assert expected_positives([5, 5], 1, sampler, views) == [views - 1.0] * 2
            assert anchors_without_positive([5, 5], 1, sampler, views) == [float(views == 1)] * 2


def measured(labels: Sequence[int], batch_size: int, sampler: str, steps: int) -> tuple[list[float], list[float]]:
    """Mean positives per anchor, and the share of anchors without any, of each class, over many batches."""
    made = make_sampler(sampler, labels, batch_size, seed=0)
    anchors, positives, lonely = Counter[int](), Counter[int](), Counter[int]()
    for step in range(1, steps + 1):
        for label, count in Counter(labels[row] for row in made.rows(step)).items():
            anchors[label] += count
            positives[label] += count * (count - 1)
            lonely[label] += count == 1
    classes = sorted(anchors)
    return [positives[c] / anchors[c] for c in classes], [lonely[c] / anchors[c] for c in classes]


class TestAudit:
    """What is said before launch equals what many batches show."""

    @pytest.mark.parametrize("batch_size", [2, 6, 16])
    @pytest.mark.parametrize("counts", [(50, 50), (80, 16, 4), (10, 10, 10, 10)])
    def test_of_random_batches(self, counts: tuple[int, ...], batch_size: int) -> None:
        labels = [label for label, count in enumerate(counts) for _ in range(count)]
        positives, lonely = measured(labels, batch_size, "random", steps=30_000)
        assert expected_positives(counts, batch_size, "random") == pytest.approx(positives, abs=0.05)
        assert anchors_without_positive(counts, batch_size, "random") == pytest.approx(lonely, abs=0.03)

    @pytest.mark.parametrize("batch_size", [2, 3, 4, 6, 12])
    def test_of_balanced_batches_that_divide_evenly(self, batch_size: int) -> None:
        self.check_balanced(2 if batch_size % 3 else 3, batch_size)

    @pytest.mark.parametrize(("classes", "batch_size"), [(2, 3), (3, 4), (3, 5), (3, 7), (5, 4)])
    def test_of_balanced_batches_that_do_not(self, classes: int, batch_size: int) -> None:
        self.check_balanced(classes, batch_size)

    @staticmethod
    def check_balanced(classes: int, batch_size: int) -> None:
        labels = [label for label in range(classes) for _ in range(60)]
        positives, lonely = measured(labels, batch_size, "balanced", steps=60)
        counts = [60] * classes
        assert expected_positives(counts, batch_size, "balanced") == pytest.approx(positives)
        assert anchors_without_positive(counts, batch_size, "balanced") == pytest.approx(lonely)

    def test_a_batch_of_one_has_no_positive(self) -> None:
        for sampler in ("random", "balanced"):
            assert expected_positives([5, 5], 1, sampler) == [0.0, 0.0]
            assert anchors_without_positive([5, 5], 1, sampler) == [1.0, 1.0]

    def test_the_only_row_of_its_class_never_has_a_positive(self) -> None:
        assert expected_positives([9, 1], 4, "random")[1] == 0.0
        assert anchors_without_positive([9, 1], 4, "random")[1] == 1.0

    def test_a_batch_of_everything_leaves_nobody_alone(self) -> None:
        assert expected_positives([6, 4], 10, "random") == pytest.approx([5.0, 3.0])
        assert anchors_without_positive([6, 4], 10, "random") == [0.0, 0.0]

    def test_chances_stay_chances_for_large_batches(self) -> None:
        assert np.isfinite(anchors_without_positive([100_000, 3], 4096, "random")).all()
        assert anchors_without_positive([2, 2], 100, "random") == [0.0, 0.0]
