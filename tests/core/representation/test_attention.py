"""Attention of words, against slow loops. Deletion, entropy and rank agreement, against their known properties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.representation.attention import (
    attention_over_layers,
    attention_over_steps,
    deletion_effects,
    effective_words,
    entered_and_left,
    in_top,
    most_attended,
    punctuation,
    rank_agreement,
    selection_remark,
    split_attention,
    top_words,
    word_attention,
)
from tests.cases import each

LAYERS, HEADS, TOKENS = 3, 4, 9
# [CLS] un ##believ ##able film , loved [SEP] [SEP]; the last word has tokens 6 and 7.
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
    def test_every_text_gets_its_own_columns_uncopied(self) -> None:
        texts = [made_attention(seed, tokens=t) for seed, t in enumerate((3, 1, 7))]
        joined = np.concatenate(texts, axis=2).astype(np.float16)
        parts = split_attention(joined, [3, 1, 7])
        assert all((part == text.astype(np.float16)).all() for part, text in zip(parts, texts, strict=True))
        assert all(np.shares_memory(part, joined) for part in parts)
        assert split_attention(np.empty((2, 2, 0)), []) == []


class TestWordAttention:
    @each("layer", [1, 3])
    @each("head", [None, 2])
    @each(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 2e-3)])
    def test_words_and_special_tokens_equal_a_slow_loop_and_sum_to_one(
        self, layer: int, head: int | None, dtype: type, tolerance: float
    ) -> None:
        attention = made_attention(dtype=dtype)
        found = word_attention(attention, PLACES, layer=layer, head=head)
        assert found.words == pytest.approx(slow_words(attention, layer, head), abs=1e-12)
        assert found.words.dtype == np.float64
        assert found.words.sum() + found.special_share == pytest.approx(1, abs=tolerance)
        heads = range(HEADS) if head is None else [head]
        loop = np.mean([sum(float(attention[layer - 1, h, t]) for t in SPECIAL) for h in heads])
        assert found.special_share == pytest.approx(loop, abs=1e-12)

    def test_words_without_tokens_get_nothing_and_special_tokens_the_rest(self) -> None:
        assert word_attention(made_attention(), [], layer=1).special_share == pytest.approx(1)
        assert word_attention(made_attention(), [(1,), ()], layer=1).words[1] == 0

    def test_over_layers_and_over_steps_each_row_is_one_of_them(self) -> None:
        steps = [made_attention(seed) for seed in range(4)]
        layers = attention_over_layers(steps[0], PLACES, head=1)
        assert layers == pytest.approx(np.array([slow_words(steps[0], layer, 1) for layer in (1, 2, 3)]))
        rows = attention_over_steps(steps, PLACES, layer=3)
        assert rows == pytest.approx(np.array([slow_words(step, 3, None) for step in steps]))


class TestTopWords:
    @each("k", [1, 5, 11])
    def test_they_equal_taking_the_greatest_again_and_again(self, k: int) -> None:
        weights = np.random.default_rng(k).integers(0, 5, 12) / 10
        left, chosen = dict(enumerate(weights.tolist())), []
        for _ in range(k):
            best = min(left, key=lambda place: (-left[place], place))
            chosen.append(best)
            del left[best]
        assert top_words(weights, k) == tuple(chosen)

    def test_a_k_that_selects_nothing_is_said(self) -> None:
        assert selection_remark(3, 2) == ""
        for k in (3, 30):
            assert top_words([0.2, 0.1, 0.3], k) == (2, 0, 1)
            assert f"at most k = {k} words (3)" in selection_remark(3, k)

    def test_a_text_without_words_has_none_to_choose(self) -> None:
        assert top_words([], 3) == ()
        assert "none of the words" in selection_remark(0, 3)

    def test_entered_left_and_stayed_are_told_by_position(self) -> None:
        before, after = [0.5, 0.4, 0.3, 0.0, 0.1], [0.1, 0.4, 0.0, 0.6, 0.5]
        assert entered_and_left(before, after, 3) == ((3, 4), (0, 2), (1,))

    def test_membership_over_steps_is_the_top_of_each_row(self) -> None:
        rows = np.random.default_rng(8).integers(0, 4, (6, 7)) / 10
        for k in (1, 3, 9):
            found = in_top(rows, k)
            assert [{*np.flatnonzero(row)} for row in found] == [{*top_words(row, k)} for row in rows]
        assert in_top(np.empty((2, 0)), 1).shape == (2, 0)

    def test_the_most_attended_are_chosen_by_their_greatest_weight_and_keep_the_order_of_reading(self) -> None:
        rows = np.array([[0.1, 0.0, 0.5, 0.2], [0.1, 0.6, 0.0, 0.2]])
        assert [most_attended(rows, most) for most in (2, 3, 9)] == [(1, 2), (1, 2, 3), (0, 1, 2, 3)]
        assert most_attended(np.array([[0.5, 0.5, 0.5]]), 2) == (0, 1)


class TestEffectiveWords:
    @each("words", [1, 7])
    def test_equal_shares_are_spread_over_all_words(self, words: int) -> None:
        assert effective_words(np.array([0.03] * words + [0.0, 0.0])) == pytest.approx(words)

    def test_unequal_shares_follow_the_entropy_of_their_sum(self) -> None:
        assert effective_words(np.array([2.0, 1.0, 1.0])) == pytest.approx(math.exp(1.5 * math.log(2)))

    def test_nothing_attended_is_no_word(self) -> None:
        assert (effective_words(np.zeros(2)), effective_words(np.empty(0))) == (0, 0)


def test_deleting_a_word_lowers_or_raises_the_class() -> None:
    base = np.array([0.2, 0.7, 0.1])
    deleted = np.array([[0.3, 0.6, 0.1], [0.1, 0.85, 0.05], [0.6, 0.2, 0.2], [0.2, 0.7, 0.1]])
    assert deletion_effects(base, deleted, 1) == pytest.approx([0.1, -0.15, 0.5, 0.0])
    assert deletion_effects(base, np.empty((0, 3)), 0).shape == (0,)


class TestRankAgreement:
    def test_words_without_a_number_do_not_count(self) -> None:
        a, b = np.array([0.1, math.nan, 0.3, 0.2, 0.5]), np.array([1.0, 9.0, 3.0, math.nan, 2.0])
        found = rank_agreement(a, b)
        assert found == rank_agreement(np.array([0.1, 0.3, 0.5]), np.array([1.0, 3.0, 2.0]))
        assert (found.kendall, found.spearman, found.words) == (pytest.approx(1 / 3), pytest.approx(1 / 2), 3)

    @each("pair", [([], []), ([1, 2], [1, 2]), ([1, 1, 1, 1], [1, 2, 3, 4]), ([1, 2, 3], [0, 0, 0])])
    def test_what_has_no_ranking_has_no_agreement(self, pair: tuple[list[float], list[float]]) -> None:
        found = rank_agreement(*np.array(pair, np.float64))
        assert (found.kendall, found.spearman, found.words) == (None, None, len(pair[0]))


def test_punctuation_is_words_without_a_letter_or_a_number() -> None:
    words = ["Well", ",", "“", "no", "…", "3", "-", "不", "!?", "don't", " "]
    assert [words[place] for place in punctuation(words)] == [",", "“", "…", "-", "!?", " "]


def test_what_is_skipped_is_never_chosen() -> None:
    weights = np.array([0.1, 0.5, 0.2, 0.3])
    assert top_words(weights, 2, skip=(1,)) == (3, 2)
    assert top_words(weights, 2, skip=range(4)) == ()
    assert in_top(np.stack([weights, weights[::-1]]), 2, skip=(1,)).tolist() == [
        [False, False, True, True],
        [True, False, True, False],
    ]
    assert entered_and_left([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], 1, skip=(2,)) == ((1,), (0,), ())
