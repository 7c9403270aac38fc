"""Counts and lift of selected words, against slow loops and the identities of lift."""

from __future__ import annotations

import random

import pytest

from core.representation.word_statistics import (
    PRIOR_EXAMPLES,
    selection_changes,
    word_statistics,
)
from tests.cases import each

WORDS = [
    ["Great", "film", "!"],
    ["great", "GREAT", "cast"],
    ["a", "dull", "film"],
    ["dull", "and", "great"],
]
SELECTED = [[0, 2], [0, 1], [1], [0]]


def made_corpus(seed: int, examples: int = 60, classes: int = 3) -> tuple[list[list[str]], list[list[int]], list[int]]:
    rng = random.Random(seed)
    words = [[rng.choice("aAbBcdefghß") for _ in range(rng.randint(1, 9))] for _ in range(examples)]
    selected = [rng.sample(range(len(text)), rng.randint(0, len(text))) for text in words]
    return words, selected, [rng.randrange(classes) for _ in range(examples)]


@each("seed", range(3))
def test_counts_equal_a_loop_over_examples_and_lift_is_the_smoothed_probability_over_the_prior(seed: int) -> None:
    words, selected, labels = made_corpus(seed)
    found = word_statistics(words, selected, labels, 3, at_least=1)
    prior = [labels.count(c) / len(labels) for c in range(3)]
    for row in found.rows:
        for c in range(3):
            count = occurs = 0
            for text, chosen, label in zip(words, selected, labels, strict=True):
                count += label == c and any(text[place].casefold() == row.word for place in chosen)
                occurs += label == c and any(word.casefold() == row.word for word in text)
            assert (row.counts[c], row.occurrences[c]) == (count, occurs)
        smoothed = [(row.counts[c] + PRIOR_EXAMPLES * prior[c]) / (row.count + PRIOR_EXAMPLES) for c in range(3)]
        assert row.lifts == pytest.approx([s / p for s, p in zip(smoothed, prior, strict=True)])
        assert row.lift == max(row.lifts) == row.lifts[row.label] >= 1
    everywhere = {text[p].casefold() for text, chosen in zip(words, selected, strict=True) for p in chosen}
    assert {row.word for row in found.rows} == everywhere


def test_rows_are_sorted_by_lift_then_count_then_word() -> None:
    words, selected, labels = made_corpus(9)
    rows = word_statistics(words, selected, labels, 3, at_least=1).rows
    keys = [(-row.lift, -row.count, row.word) for row in rows]
    assert keys == sorted(keys)
    for c in range(3):
        of_class = word_statistics(words, selected, labels, 3, at_least=1).of_class(c)
        keys = [(-row.lifts[c], -row.counts[c], row.word) for row in of_class]
        assert keys == sorted(keys)
        assert {row.word for row in of_class} == {row.word for row in rows if row.counts[c] > 0}


def test_rare_words_are_left_out_and_counted() -> None:
    words, selected, labels = made_corpus(4)
    everything = word_statistics(words, selected, labels, 3, at_least=1)
    for least in (2, 9, 1000):
        found = word_statistics(words, selected, labels, 3, at_least=least)
        assert found.rows == tuple(row for row in everything.rows if row.count >= least)
        assert found.left_out == len(everything.rows) - len(found.rows)
    assert everything.left_out == 0


def test_a_word_twice_in_a_text_counts_once_and_letters_fold() -> None:
    (row,) = word_statistics([["Straße", "STRASSE"]], [[0, 1]], [0], 1, at_least=1).rows
    assert (row.word, row.count, row.occurs) == ("strasse", 1, 1)


def test_a_class_without_examples_has_no_say() -> None:
    (row,) = word_statistics([["a"]] * 4, [[0]] * 4, [1] * 4, 3, at_least=1).rows
    assert row.lifts == (1.0, 1.0, 1.0)
    assert row.label == 1


def test_no_examples_give_no_rows() -> None:
    found = word_statistics([], [], [], 2)
    assert (found.rows, found.examples, found.left_out) == ((), (0, 0), 0)
    assert selection_changes([], [], []) == ()


class TestChanges:
    def test_counts_before_and_after_are_told(self) -> None:
        after = [[1], [2], [2], [2]]
        found = selection_changes(WORDS, SELECTED, after, at_least=1)
        by_word = {row.word: (row.before, row.after, row.occurs, row.change) for row in found}
        assert by_word == {
            "great": (2, 1, 3, -1),
            "!": (1, 0, 1, -1),
            "dull": (2, 0, 2, -2),
            "film": (0, 2, 2, 2),
            "cast": (0, 1, 1, 1),
        }
        assert [row.word for row in found] == ["dull", "film", "great", "!", "cast"]

    @each("least", [1, 4, 10])
    def test_they_agree_with_the_statistics_of_each_step(self, least: int) -> None:
        words, before, labels = made_corpus(1)
        rng = random.Random(5)
        after = [[place for place in range(len(text)) if rng.random() < 0.4] for text in words]
        old = {row.word: row.count for row in word_statistics(words, before, labels, 3, at_least=1).rows}
        new = {row.word: row.count for row in word_statistics(words, after, labels, 3, at_least=1).rows}
        found = selection_changes(words, before, after, at_least=least)
        expected = {w for w in old | new if old.get(w, 0) >= least or new.get(w, 0) >= least}
        assert {row.word for row in found} == expected
        assert all((row.before, row.after) == (old.get(row.word, 0), new.get(row.word, 0)) for row in found)
