"""Attention of [CLS] by word, and the effect of deleting a word.

Attention is not explanation: pages show `deletion_effects` and `rank_agreement` beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from core.messages import _

Array = NDArray[np.floating]
Doubles = NDArray[np.float64]

# A ranking of fewer words is not meaningful.
RANKED_WORDS_MIN = 3


class WordAttention(NamedTuple):
    """Attention of [CLS] on words and on special tokens.

    Attributes:
        words: [W] share of each word, the sum over its tokens.
        special_share: share of the tokens that belong to no word. All shares sum to one, up to float16 precision.
    """

    words: Doubles
    special_share: float


class Exchange(NamedTuple):
    """Positions of the words that entered, left or stayed in the top k, sorted by new rank (`left` by old rank)."""

    entered: tuple[int, ...]
    left: tuple[int, ...]
    stayed: tuple[int, ...]


class RankAgreement(NamedTuple):
    """Agreement of two rankings, from −1 to 1; None with too few words, or if all words tie in one ranking."""

    kendall: float | None
    spearman: float | None
    words: int


def split_attention(attention: Array, lengths: Sequence[int]) -> list[Array]:
    """Split the concatenated attention of several texts.

    Args:
        attention: [L, heads, tokens] rows of [CLS].
        lengths: number of tokens of each text, ≥ 1.
    Returns: [L, heads, T] for each text, views of the input.
    """
    return np.split(attention, np.cumsum(lengths)[:-1], axis=2) if len(lengths) else []


def word_attention(
    attention: Array, places: Sequence[Sequence[int]], *, layer: int, head: int | None = None
) -> WordAttention:
    """Compute the attention of [CLS] on each word in one block.

    Args:
        attention: [L, heads, T] of one text.
        places: token positions of each of W words; all other tokens are special.
        layer: number of the block, 1 to L.
        head: 0 to heads − 1; None takes the mean over heads.
    """
    shares = _over_heads(attention[layer - 1 : layer], head)  # [1, T]
    words = _joined(shares, places)[0]
    return WordAttention(words, float(shares.sum() - words.sum()))


def attention_over_layers(attention: Array, places: Sequence[Sequence[int]], *, head: int | None = None) -> Doubles:
    """Compute `word_attention` for every block: [L, W]."""
    return _joined(_over_heads(attention, head), places)


def attention_over_steps(
    attention: Sequence[Array], places: Sequence[Sequence[int]], *, layer: int, head: int | None = None
) -> Doubles:
    """Compute `word_attention` for one text at S ≥ 1 steps: [S, W]."""
    return np.stack([word_attention(of_step, places, layer=layer, head=head).words for of_step in attention])


def punctuation(words: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of words without a letter or a number: punctuation, symbols and separators."""
    return tuple(place for place, word in enumerate(words) if all(category(sign)[0] not in "LNM" for sign in word))


def top_words(weights: Array | Sequence[float], k: int, skip: Collection[int] = ()) -> tuple[int, ...]:
    """Return the positions of the k words with the greatest weight [W], descending; ties go to the lowest position.

    Args:
        k: ≥ 1.
        skip: positions that are never selected, such as those of punctuation.
    """
    left_out = set(skip)
    return tuple([place for place in _descending(weights).tolist() if place not in left_out][:k])


def selection_remark(words: int, k: int) -> str:
    """Return a sentence if the top k of a text of `words` words selects nothing, or an empty text."""
    if not words:
        return _("The encoder reads none of the words of this text, so none can be selected.")
    nothing = _("This text has at most k = {k} words ({words}), so nothing is selected.", k=k, words=words)
    return nothing if k >= words else ""


def entered_and_left(
    before: Array | Sequence[float], after: Array | Sequence[float], k: int, skip: Collection[int] = ()
) -> Exchange:
    """Find the words that entered and left the top k between two weightings [W] of one text."""
    old, new = top_words(before, k, skip), top_words(after, k, skip)
    return Exchange(
        entered=tuple(word for word in new if word not in old),
        left=tuple(word for word in old if word not in new),
        stayed=tuple(word for word in new if word in old),
    )


def in_top(weights: Array, k: int, skip: Collection[int] = ()) -> NDArray[np.bool_]:
    """Mark the top k ≥ 1 words of each row: weights [S, W] → bool [S, W]."""
    chosen = np.zeros(weights.shape, dtype=bool)
    may = np.setdiff1d(np.arange(weights.shape[1]), list(skip))
    np.put_along_axis(chosen, may[_descending(weights[:, may])[:, :k]], True, axis=1)
    return chosen


def most_attended(weights: Array, most: int) -> tuple[int, ...]:
    """Return at most `most` words, in reading order: those with the greatest weight in any row [S, W]."""
    return tuple(sorted(_descending(weights.max(0))[:most].tolist()))


def effective_words(weights: Array) -> float:
    """Compute the effective number of words that share attention [W]: exp(entropy of the shares), 1 to W.

    Returns: 0 if all weights are 0.
    """
    shares = weights[weights > 0]
    if not shares.size:
        return 0.0
    shares = shares / shares.sum()
    return float(np.exp(max(0.0, float(-(shares * np.log(shares)).sum()))))


def deletion_effects(base_probabilities: Array, deleted: Array, target: int) -> Doubles:
    """Compute the drop in the probability of a class when each word is deleted; negative if it rises.

    Args:
        base_probabilities: [C], of the whole text.
        deleted: [W, C] probabilities; row w is for the text without word w.
        target: the class, usually the predicted one.
    Returns: [W], from −1 to 1.
    """
    return base_probabilities.astype(np.float64)[target] - deleted.astype(np.float64)[:, target]


def rank_agreement(first: Array, second: Array) -> RankAgreement:
    """Kendall's τ-b and Spearman's ρ between two weightings [W] of the same words.

    Words with NaN in either weighting are ignored.

    Source: Kendall 1945; Spearman 1904.
    """
    measured = np.isfinite(first) & np.isfinite(second)
    a, b = first[measured], second[measured]
    if len(a) < RANKED_WORDS_MIN or np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankAgreement(None, None, len(a))
    from scipy.stats import kendalltau, spearmanr

    return RankAgreement(float(kendalltau(a, b).statistic), float(spearmanr(a, b).statistic), len(a))


def _over_heads(attention: Array, head: int | None) -> Doubles:
    """Select one head, or average over heads: [L, heads, T] → [L, T]."""
    if head is None:
        return attention.mean(1, dtype=np.float64)
    return attention[:, head].astype(np.float64)


def _joined(shares: Doubles, places: Sequence[Sequence[int]]) -> Doubles:
    """Sum over the tokens of every word: [L, T] → [L, W]."""
    pieces = np.array([place for word in places for place in word], dtype=np.int64)
    owners = np.repeat(np.arange(len(places)), np.array([len(word) for word in places], dtype=np.int64))
    words = np.zeros((len(shares), len(places)))
    np.add.at(words.T, owners, shares[:, pieces].T)
    return words


def _descending(weights: Array | Sequence[float]) -> NDArray[np.int64]:
    """Sort positions along the last axis by falling weight; ties go to the lowest position."""
    return np.argsort(np.negative(weights), axis=-1, kind="stable")
