"""Thinned classes, flipped labels and changed words: exact fractions, nested, seeded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from core.errors import ConfigError
from core.tasks.noise import flipped_labels, long_tail, noisy_text
from core.tasks.splits import stratified_order
from tests.cases import each

SENTENCE = "The old film was slow but the quiet ending moved everyone who stayed in the room"


def made_labels(counts: list[int], seed: int = 0) -> list[int]:
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    return np.random.default_rng(seed).permutation(labels).tolist()


class TestLongTail:
    @each("ratio", [1.5, 2.0, 10.0, 50.0])
    @each("counts", [[100, 100], [100, 100, 100, 100], [60, 100, 90], [500, 20]])
    def test_the_first_class_has_ratio_times_the_rows_of_the_last(self, counts: list[int], ratio: float) -> None:
        labels = made_labels(counts)
        stay = long_tail(labels, len(counts), ratio, stratified_order(labels, 3))
        left = Counter(labels[row] for row in stay)
        for label in range(len(counts)):  # each class to within the row lost by rounding
            exact = left[0] * ratio ** (-label / (len(counts) - 1))
            assert left[label] <= exact + 1
            assert left[label] >= exact - 1 - ratio ** (-label / (len(counts) - 1))

    @each("counts", [[100, 100, 100], [60, 100, 90], [500, 20]])
    def test_no_more_rows_go_than_must(self, counts: list[int]) -> None:
        labels = made_labels(counts)
        stay = long_tail(labels, len(counts), 4.0, stratified_order(labels, 3))
        left = Counter(labels[row] for row in stay)
        assert any(left[label] == counts[label] for label in range(len(counts)))

    def test_a_higher_ratio_keeps_a_part_of_what_a_lower_one_keeps(self) -> None:
        labels = made_labels([100, 100, 100])
        order = stratified_order(labels, 5)
        kept = [set(long_tail(labels, 3, ratio, order)) for ratio in (2.0, 5.0, 20.0)]
        assert kept[2] < kept[1] < kept[0]

    def test_a_class_that_would_be_empty_is_refused_with_what_would_work(self) -> None:
        labels = made_labels([10, 10])
        with pytest.raises(ConfigError, match=r"imbalance = 11.* at most 10"):
            long_tail(labels, 2, 11.0, stratified_order(labels, 0))
        assert len(long_tail(labels, 2, 10.0, stratified_order(labels, 0))) == 11


class TestFlippedLabels:
    @each("rate", [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0])
    def test_every_class_gets_its_share_in_every_prefix(self, rate: float) -> None:
        labels = made_labels([90, 200, 31])
        order = stratified_order(labels, 4)
        noisy = flipped_labels(labels, 3, rate, 4, order)
        seen, flipped = Counter[int](), Counter[int]()
        for row in order:
            seen[labels[row]] += 1
            flipped[labels[row]] += noisy[row] != labels[row]
            assert abs(flipped[labels[row]] - rate * seen[labels[row]]) < 1 + 1e-9

    def test_the_wrong_labels_are_spread_evenly_over_the_other_classes(self) -> None:
        labels = [0] * 6000
        noisy = Counter(flipped_labels(labels, 4, 1.0, 0, range(6000)))
        assert set(noisy) == {1, 2, 3}
        # Three binomials with mean 2,000 and standard deviation 37. Five deviations are exceeded once in a million.
        assert all(abs(count - 2000) < 5 * 37 for count in noisy.values())

    def test_the_seed_chooses_the_rows(self) -> None:
        labels = made_labels([50, 50])
        order = stratified_order(labels, 0)
        one, again, other = (flipped_labels(labels, 2, 0.2, seed, order) for seed in (1, 1, 2))
        assert one == again
        assert one != other


class TestNoisyText:
    def test_it_is_a_function_of_seed_and_row(self) -> None:
        assert noisy_text(" two  spaces ", 0.0, 0, 0) == " two  spaces "
        assert noisy_text(SENTENCE, 0.3, 1, 7) == noisy_text(SENTENCE, 0.3, 1, 7)
        assert len({noisy_text(SENTENCE, 0.3, 1, row) for row in range(20)}) > 10
        assert len({noisy_text(SENTENCE, 0.3, seed, 7) for seed in range(20)}) > 10

    def test_both_texts_of_a_pair_change_and_differently(self) -> None:
        first, second = noisy_text((SENTENCE, SENTENCE), 0.4, 0, 0)
        assert SENTENCE not in (first, second)
        assert first != second
