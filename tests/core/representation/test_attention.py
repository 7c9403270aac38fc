"""Attention of words against slow loops; deletion, entropy and rank agreement against what is known of them."""

from __future__ import annotations

import math
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from core.representation.attention import (
    attention_over_layers,
    attention_over_steps,
    changed_predictions,
    deletion_effects,
    effective_words,
    entered_and_left,
    entropy,
    in_top,
    most_attended,
    punctuation,
    rank_agreement,
    split_attention,
    top_words,
    word_attention,
)
from tests.cases import each

LAYERS, HEADS, TOKENS = 3, 4, 9
# [CLS] un ##believ ##able film , loved [SEP] [SEP], the last word in two pieces that do not touch.
PLACES = [(1, 2, 3), (4,), (5,), (6, 7)]
SPECIAL = [0, 8]


def made_attention(seed: int = 0, *, tokens: int = TOKENS, dtype: type = np.float64) -> np.ndarray:
    scores = np.exp(np.random.default_rng(seed).normal(size=(LAYERS, HEADS, tokens)))
    return (scores / scores.sum(-1, keepdims=True)).astype(dtype)


def slow_words(attention: np.ndarray, layer: int, head: int | None) -> list[float]:
    heads = range(attention.shape[1]) if head is None else [head]
    found = []
    for pieces in PLACES:
        total = 0.0
        for h in heads:
            for place in pieces:
                total += float(attention[layer - 1, h, place])
        found.append(total / len(heads))
    return found


class TestSplit:
    def test_every_text_gets_its_own_columns(self) -> None:
        texts = [made_attention(seed, tokens=t) for seed, t in enumerate((3, 1, 7))]
        parts = split_attention(np.concatenate(texts, axis=2), [3, 1, 7])
        assert len(parts) == 3
        assert all((part == text).all() for part, text in zip(parts, texts, strict=True))

    def test_it_copies_nothing_and_keeps_the_type(self) -> None:
        attention = made_attention(dtype=np.float16)
        parts = split_attention(attention, [4, 5])
        assert all(np.shares_memory(part, attention) and part.dtype == np.float16 for part in parts)

    def test_no_texts_are_no_parts(self) -> None:
        assert split_attention(np.empty((2, 2, 0)), []) == []

    @each(
        ("lengths", "message"),
        [
            ([4, 4], "lengths sum to 8: expected the 9"),
            ([9, 0], "0 is among"),
            ([10, -1], "-1 is among"),
            ([], "sum to 0"),
        ],
    )
    def test_lengths_that_do_not_fit_are_named(self, lengths: list[int], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            split_attention(made_attention(), lengths)

    def test_a_wrong_shape_is_named(self) -> None:
        with pytest.raises(ValueError, match=r"attention = \[2, 3\]: expected a shape \[L, heads, T\]"):
            split_attention(np.ones((2, 3)), [3])


class TestWordAttention:
    @each("layer", [1, 2, 3])
    @each("head", [None, 0, 3])
    def test_it_equals_a_slow_loop(self, layer: int, head: int | None) -> None:
        attention = made_attention()
        found = word_attention(attention, PLACES, layer=layer, head=head)
        assert found.words == pytest.approx(slow_words(attention, layer, head), abs=1e-12)

    @each(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-6), (np.float16, 2e-3)])
    def test_words_and_special_tokens_sum_to_one(self, dtype: type, tolerance: float) -> None:
        attention = made_attention(3, dtype=dtype)
        for layer in range(1, LAYERS + 1):
            for head in (None, 2):
                found = word_attention(attention, PLACES, layer=layer, head=head)
                assert found.words.dtype == np.float64
                assert found.words.sum() + found.special_share == pytest.approx(1, abs=tolerance)
                heads = range(HEADS) if head is None else [head]
                loop = np.mean([sum(float(attention[layer - 1, h, t]) for t in SPECIAL) for h in heads])
                assert found.special_share == pytest.approx(loop, abs=1e-12)

    def test_a_text_without_words_gives_all_to_special_tokens(self) -> None:
        found = word_attention(made_attention(), [], layer=1)
        assert found.words.shape == (0,)
        assert found.special_share == pytest.approx(1)

    def test_a_word_without_tokens_gets_nothing(self) -> None:
        assert word_attention(made_attention(), [(1,), ()], layer=1).words[1] == 0

    @each(
        ("arguments", "message"),
        [
            ({"layer": 0}, "layer = 0: expected 1 to 3"),
            ({"layer": 4}, "layer = 4: expected 1 to 3"),
            ({"layer": 1, "head": 4}, "head = 4: expected 0 to 3"),
            ({"layer": 1, "head": -1}, "head = -1: expected 0 to 3"),
        ],
    )
    def test_layers_and_heads_that_are_not_there_are_named(self, arguments: dict[str, int], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            word_attention(made_attention(), PLACES, **arguments)

    @each(
        ("places", "message"),
        [
            ([(1, 9)], "9 is among.*0 to 8"),
            ([(-1,)], "-1 is among"),
            ([(1, 2), (2,)], "two words"),
            ([(3, 3)], "two words"),
        ],
    )
    def test_places_that_do_not_fit_are_named(self, places: list[tuple[int, ...]], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            word_attention(made_attention(), places, layer=1)

    def test_over_layers_each_row_is_that_layers(self) -> None:
        attention = made_attention(5)
        rows = attention_over_layers(attention, PLACES, head=1)
        assert rows == pytest.approx(np.array([slow_words(attention, layer, 1) for layer in (1, 2, 3)]))
        with pytest.raises(ValueError, match="head = 7"):
            attention_over_layers(attention, PLACES, head=7)

    def test_over_steps_each_row_is_that_steps(self) -> None:
        steps = [made_attention(seed) for seed in range(4)]
        rows = attention_over_steps(steps, PLACES, layer=3)
        assert rows == pytest.approx(np.array([slow_words(step, 3, None) for step in steps]))
        assert attention_over_steps([], PLACES, layer=3).shape == (0, 4)


class TestTopWords:
    def test_they_are_descending_and_ties_go_to_the_lowest_position(self) -> None:
        assert top_words([0.1, 0.3, 0.1, 0.3, 0.2], 4).words == (1, 3, 4, 0)

    @each("k", [1, 2, 5, 11])
    def test_they_equal_taking_the_greatest_again_and_again(self, k: int) -> None:
        weights = np.random.default_rng(k).integers(0, 5, 12) / 10
        left, chosen = dict(enumerate(weights.tolist())), []
        for _ in range(k):
            best = min(left, key=lambda place: (-left[place], place))
            chosen.append(best)
            del left[best]
        assert top_words(weights, k).words == tuple(chosen)

    def test_a_k_that_selects_nothing_is_said(self) -> None:
        assert top_words([0.2, 0.1, 0.3], 2).remark is None
        for k in (3, 30):
            found = top_words([0.2, 0.1, 0.3], k)
            assert found.words == (2, 0, 1)
            assert found.remark is not None
            assert f"k = {k} takes in every word" in found.remark
            assert "(3)" in found.remark

    def test_a_text_without_words_has_none_to_choose(self) -> None:
        found = top_words([], 3)
        assert found.words == ()
        assert found.remark is not None

    @each(
        ("weights", "k", "message"),
        [
            ([0.5], 0, "k = 0: expected at least 1"),
            ([0.5, math.nan], 1, "weights = nan"),
            ([math.inf], 1, "weights = inf"),
            ([[0.5]], 1, r"weights = \[1, 1\]: expected a shape \[W\]"),
        ],
    )
    def test_what_cannot_be_ranked_is_named(self, weights: list[float], k: int, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            top_words(weights, k)

    def test_entered_left_and_stayed_are_told_by_position(self) -> None:
        before, after = [0.5, 0.4, 0.3, 0.0, 0.1], [0.1, 0.4, 0.0, 0.6, 0.5]
        assert entered_and_left(before, after, 3) == ((3, 4), (0, 2), (1,))

    def test_weightings_of_different_texts_are_refused(self) -> None:
        with pytest.raises(ValueError, match="after has 1 words: expected the 2 of before"):
            entered_and_left([0.1, 0.2], [0.1], 1)

    def test_membership_over_steps_is_the_top_of_each_row(self) -> None:
        rows = np.random.default_rng(8).integers(0, 4, (6, 7)) / 10
        for k in (1, 3, 9):
            found = in_top(rows, k)
            assert [{*np.flatnonzero(row)} for row in found] == [{*top_words(row, k).words} for row in rows]
        assert in_top(np.empty((2, 0)), 1).shape == (2, 0)
        with pytest.raises(ValueError, match="k = 0"):
            in_top(rows, 0)
        with pytest.raises(ValueError, match=r"expected a shape \[S, W\]"):
            in_top(rows[0], 1)

    def test_the_most_attended_are_chosen_by_their_greatest_weight_and_keep_the_order_of_reading(self) -> None:
        rows = np.array([[0.1, 0.0, 0.5, 0.2], [0.1, 0.6, 0.0, 0.2]])
        assert most_attended(rows, 2) == (1, 2)
        assert most_attended(rows, 3) == (1, 2, 3)
        assert most_attended(rows, 9) == (0, 1, 2, 3)
        assert most_attended(np.empty((0, 4)), 2) == ()
        assert most_attended(np.array([[0.5, 0.5, 0.5]]), 2) == (0, 1)
        with pytest.raises(ValueError, match="most = 0"):
            most_attended(rows, 0)


class TestEntropy:
    @each("words", [1, 2, 7])
    def test_equal_shares_are_spread_over_all_words(self, words: int) -> None:
        weights = [0.03] * words + [0.0, 0.0]
        assert effective_words(weights) == pytest.approx(words)
        assert entropy(weights) == pytest.approx(math.log(words), abs=1e-12)

    def test_unequal_shares_follow_the_formula(self) -> None:
        shares = [0.5, 0.25, 0.25]
        assert entropy(shares) == pytest.approx(1.5 * math.log(2))
        assert entropy([4 * share for share in shares]) == pytest.approx(1.5 * math.log(2))

    def test_nothing_attended_is_no_word(self) -> None:
        assert (entropy([0.0, 0.0]), effective_words([0.0, 0.0]), effective_words([])) == (0, 0, 0)

    @each("measure", [entropy, effective_words])
    def test_a_negative_share_is_named(self, measure: type) -> None:
        with pytest.raises(ValueError, match=r"weights = -0.1: expected 0 or more"):
            measure([0.5, -0.1])


class TestDeletion:
    BASE = np.array([0.2, 0.7, 0.1])
    DELETED = np.array([[0.3, 0.6, 0.1], [0.1, 0.85, 0.05], [0.6, 0.2, 0.2], [0.2, 0.7, 0.1]])

    def test_the_effect_is_the_drop_of_the_predicted_class(self) -> None:
        assert deletion_effects(self.BASE, self.DELETED, 1) == pytest.approx([0.1, -0.15, 0.5, 0.0])

    def test_words_that_turn_the_prediction_are_told(self) -> None:
        assert changed_predictions(self.BASE, self.DELETED) == (2,)

    def test_no_words_have_no_effects(self) -> None:
        assert deletion_effects(self.BASE, np.empty((0, 3)), 0).shape == (0,)
        assert changed_predictions(self.BASE, np.empty((0, 3))) == ()

    def test_float32_softmax_is_good_enough(self) -> None:
        scores = np.exp(np.random.default_rng(2).normal(size=(5, 1000)).astype(np.float32))
        rows = scores / scores.sum(1, keepdims=True)
        assert deletion_effects(rows[0], rows, 3)[0] == 0

    @each(
        ("base", "deleted", "target", "message"),
        [
            (BASE, DELETED, 3, "target = 3: expected 0 to 2"),
            (BASE, DELETED, -1, "target = -1"),
            (BASE, DELETED[:, :2], 0, r"deleted = \[4, 2\]: expected a shape \[W, 3\]"),
            (BASE, BASE, 0, r"deleted = \[3\]"),
            (DELETED, DELETED, 0, r"base_probabilities = \[4, 3\]"),
            (BASE * 2, DELETED, 0, "base_probabilities = .* sum to 1"),
            (BASE, np.array([[1.5, -0.5, 0.0]]), 0, "deleted = .*1.5.* sum to 1"),
            (BASE, np.array([[math.nan, 0.5, 0.5]]), 0, "deleted = .* sum to 1"),
        ],
    )
    def test_what_is_no_distribution_is_named(
        self, base: np.ndarray, deleted: np.ndarray, target: int, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            deletion_effects(base, deleted, target)


def slow_tau_b(a: list[float], b: list[float]) -> float:
    signs = [(np.sign(a[i] - a[j]), np.sign(b[i] - b[j])) for i, j in combinations(range(len(a)), 2)]
    both = sum(x * y for x, y in signs)
    return both / math.sqrt(sum(x != 0 for x, _ in signs) * sum(y != 0 for _, y in signs))


def slow_spearman(a: list[float], b: list[float]) -> float:
    ranks = [[sum(w < v for w in row) + (sum(w == v for w in row) - 1) / 2 for v in row] for row in (a, b)]
    return float(np.corrcoef(ranks)[0, 1])


class TestRankAgreement:
    @each("ties", [3, 1000])
    def test_it_equals_the_formulas(self, ties: int) -> None:
        a, b = np.random.default_rng(ties).integers(0, ties, (2, 15)).astype(float).tolist()
        found = rank_agreement(a, b)
        assert found.kendall == pytest.approx(slow_tau_b(a, b))
        assert found.spearman == pytest.approx(slow_spearman(a, b))
        assert found.words == 15

    def test_one_order_agrees_and_its_reverse_disagrees(self) -> None:
        order = [0.1, 0.2, 0.7, 0.9]
        assert rank_agreement(order, [v**3 for v in order]) == pytest.approx((1, 1, 4))
        assert rank_agreement(order, [-v for v in order]) == pytest.approx((-1, -1, 4))

    def test_words_without_a_number_do_not_count(self) -> None:
        a, b = [0.1, math.nan, 0.3, 0.2, 0.5], [1.0, 9.0, 3.0, math.nan, 2.0]
        assert rank_agreement(a, b) == rank_agreement([0.1, 0.3, 0.5], [1.0, 3.0, 2.0])

    @each("pair", [([], []), ([1, 2], [1, 2]), ([1, 1, 1, 1], [1, 2, 3, 4]), ([1, 2, 3], [0, 0, 0])])
    def test_what_has_no_ranking_has_no_agreement(self, pair: tuple[list[float], list[float]]) -> None:
        found = rank_agreement(*pair)
        assert (found.kendall, found.spearman, found.words) == (None, None, len(pair[0]))

    def test_different_texts_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"second = \[2\]: expected the shape of first, \[3\]"):
            rank_agreement([1, 2, 3], [1, 2])


class TestPunctuation:
    WORDS: ClassVar[list[str]] = ["Well", ",", "“", "no", "…", "3", "-", "不", "!?", "don't", " "]

    def test_marks_are_words_without_a_letter_or_a_number(self) -> None:
        assert [self.WORDS[place] for place in punctuation(self.WORDS)] == [",", "“", "…", "-", "!?", " "]

    def test_what_is_skipped_is_never_chosen(self) -> None:
        weights = np.array([0.1, 0.5, 0.2, 0.3])
        assert top_words(weights, 2, skip=(1,)).words == (3, 2)
        assert top_words(weights, 3, skip=(1,)).remark is not None
        assert top_words(weights, 2, skip=range(4)).words == ()
        assert in_top(np.stack([weights, weights[::-1]]), 2, skip=(1,)).tolist() == [
            [False, False, True, True],
            [True, False, True, False],
        ]
        assert entered_and_left([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], 1, skip=(2,)) == ((1,), (0,), ())
