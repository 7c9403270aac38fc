"""The stratified order, over random lists of labels."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from core.tasks.splits import held_out, held_out_test_rows, stratified_order, text_groups, validation_rows
from tests.cases import each


def random_labels(seed: int) -> list[int]:
    """Return up to 300 labels of 1 to 8 classes, of very unequal sizes."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(rng.integers(1, 9), 0.5))
    return rng.choice(len(shares), size=rng.integers(1, 300), p=shares).tolist()


@each("seed", range(30))
class TestStratifiedOrder:
    def test_every_row_comes_once_in_an_order_of_the_seed_and_the_first_hold_every_class(self, seed: int) -> None:
        labels = random_labels(seed)
        order = stratified_order(labels, seed)
        assert sorted(order) == list(range(len(labels)))
        assert {labels[row] for row in order[: len(set(labels))]} == set(labels)
        assert order == stratified_order(tuple(labels), seed)
        if max(Counter(labels).values()) > 10:
            assert order != stratified_order(labels, seed + 1)

    def test_every_prefix_keeps_the_shares(self, seed: int) -> None:
        labels = random_labels(seed)
        total, seen = Counter(labels), Counter[int]()
        for place, row in enumerate(stratified_order(labels, seed), start=1):
            seen[labels[row]] += 1
            for label, count in total.items():
                share = count / len(labels)
                assert abs(seen[label] - place * share) <= 1 + len(total) * share


def test_classes_of_one_size_stay_within_one_of_each_other() -> None:
    labels = [i % 4 for i in range(80)]
    order = stratified_order(labels, 0)
    for size in range(1, 80):
        counts = Counter(dict.fromkeys(range(4), 0)) + Counter(labels[row] for row in order[:size])
        assert max(counts.values()) - min(counts.get(c, 0) for c in range(4)) <= 1


@each(("rows", "expected"), [(10, 3), (100, 30), (400, 120), (500, 120), (600, 120), (1000, 200), (100_000, 500)])
def test_a_fifth_is_held_out_for_validation_within_limits(rows: int, expected: int) -> None:
    assert validation_rows(rows) == expected


@each(("rows", "expected"), [(4, 0), (10, 2), (400, 80), (100_000, 1000)])
def test_a_fifth_is_held_out_for_the_test_within_limits(rows: int, expected: int) -> None:
    assert held_out_test_rows(rows) == expected


@each("seed", range(20))
class TestGroups:
    @staticmethod
    def made(seed: int) -> tuple[list[int], list[int]]:
        """Return labels of up to 300 rows, and groups of 1 to 4 rows scattered among them."""
        labels = random_labels(seed)
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(len(labels)), rng.integers(1, 5, size=len(labels)))[: len(labels)]
        return labels, rng.permutation(groups).tolist()

    def test_groups_of_one_row_change_nothing(self, seed: int) -> None:
        labels = random_labels(seed)
        numbers = np.random.default_rng(seed).permutation(len(labels)).tolist()
        assert stratified_order(labels, seed, numbers) == stratified_order(labels, seed)

    def test_every_row_comes_once_and_the_first_hold_every_class(self, seed: int) -> None:
        labels, groups = self.made(seed)
        order = stratified_order(labels, seed, groups)
        assert sorted(order) == list(range(len(labels)))
        assert {labels[row] for row in order[: len(set(labels))]} == set(labels)

    def test_behind_the_first_rows_groups_stay_together(self, seed: int) -> None:
        labels, groups = self.made(seed)
        front = len(set(labels))
        rest = [groups[row] for row in stratified_order(labels, seed, groups)[front:]]
        changes = sum(before != after for before, after in itertools.pairwise(rest))
        assert changes <= len(set(rest)) - 1

    def test_what_is_held_out_splits_no_group_and_leaves_every_class_behind(self, seed: int) -> None:
        labels, groups = self.made(seed)
        size = len(labels) // 3
        taken = held_out(labels, size, seed, groups)
        rest = set(range(len(labels))) - set(taken)
        assert len(taken) == len(set(taken)) <= size
        assert not {groups[row] for row in taken} & {groups[row] for row in rest}
        assert {labels[row] for row in rest} == set(labels)
        # Requesting the resulting size again gives the same rows.
        assert held_out(labels, len(taken), seed, groups) == taken


class TestTextGroups:
    def test_equal_texts_share_a_number_whatever_their_case_and_white_space(self) -> None:
        texts = ["One  text", "b", "one text\n", "c", *map(str, range(40))]
        groups = text_groups(texts)
        assert groups is not None
        assert groups[0] == groups[2]
        assert len(set(groups)) == len(texts) - 1
        assert text_groups(["a", "b"]) is None

    def test_the_rows_of_a_text_that_fills_the_file_go_one_by_one(self) -> None:
        assert text_groups(["the same"] * 10) is None
        groups = text_groups(["the same"] * 10 + ["twice", "twice"] + [str(i) for i in range(30)])
        assert groups is not None
        assert len(set(groups[:10])) == 10
        assert groups[10] == groups[11]
        assert len(set(groups)) == 41
