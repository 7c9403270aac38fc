"""Expected positives per anchor, and anchors without any, from batches simulated before a run.

At token level, k is a maximum, and a text may have fewer tokens, so the actual tokens are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.advice.counting import token_counts
from core.advice.estimate import SPECIAL_TOKENS, estimated_tokens
from core.config.plan import TermPlan
from core.models.source import tokenizer_file
from core.parameters import integer_setting
from core.tasks import Split
from core.tasks.batches import RandomSampler, make_sampler

# Number of class-balanced batches to simulate: their shares follow from turns and sizes, not from a formula.
COUNTED_BATCHES = 512
# Texts whose tokens are counted, spread over the training rows.
COUNTED_TEXTS = 2_000


class ClassViews(NamedTuple):
    """Numbers of vectors that represent the texts of a class.

    If texts differ in their numbers of vectors, `own` and `other` are means over anchors; every vector is an anchor.

    Attributes:
        mean: vectors per text.
        own: other vectors of an anchor's own text.
        other: vectors of another text of its class.
        alone: share of the anchors, in [0, 1], that are the only vector of their text.
        present: share of the texts, in [0, 1], that have any vector.
    """

    mean: float
    own: float
    other: float
    alone: float
    present: float


def class_views(vectors: Sequence[int]) -> ClassViews:
    """Compute the ClassViews of a class from the number of vectors of each of its texts."""
    counts = np.asarray(vectors, dtype=np.float64)
    anchors, squares, others = counts.sum(), (counts**2).sum(), len(counts) - 1
    if not anchors:
        return ClassViews(0.0, 0.0, 0.0, 0.0, 0.0)
    return ClassViews(
        mean=float(counts.mean()),
        own=float(squares / anchors) - 1,
        other=float((anchors**2 - squares) / (anchors * others)) if others else 0.0,
        alone=float((counts == 1).sum() / anchors),
        present=float((counts > 0).mean()),
    )


def expected_positives(
    class_counts: Sequence[int],
    batch_size: int,
    sampler: str,
    views: int | Sequence[ClassViews] = 1,
    *,
    seed: int = 0,
) -> list[float]:
    """Return the expected number of positives per anchor in a batch, for each class.

    Random batches are drawn without replacement, so an anchor's B − 1 companions hold (B − 1)(n_c − 1)/(n − 1) of its
    class. Batches of the other samplers are simulated and counted.

    Args:
        class_counts: rows of each class.
        views: number of vectors of every text, or the `class_views` of each class.
        seed: seed of the run.
    """
    if sampler == "random":
        others = max(1, sum(class_counts) - 1)
        companions = [(batch_size - 1) * max(0, count - 1) / others for count in class_counts]
    else:
        dealt = _dealt(tuple(class_counts), batch_size, sampler, seed)
        pairs, anchors = (dealt * (dealt - 1)).sum(0), dealt.sum(0)
        companions = [float(found) for found in pairs / np.maximum(1, anchors)]
    return [texts * view.other + view.own for texts, view in zip(companions, _views(class_counts, views), strict=True)]


def anchors_without_positive(
    class_counts: Sequence[int],
    batch_size: int,
    sampler: str,
    views: int | Sequence[ClassViews] = 1,
    *,
    seed: int = 0,
) -> list[float]:
    """Return the chance, for each class, that an anchor has no positive in its batch.

    Arguments are as in `expected_positives`. Other vectors of the anchor's text are always positives. An anchor that is
    the only vector of its text depends on other texts of its class that have vectors.
    """
    chances = []
    for label, (count, view) in enumerate(zip(class_counts, _views(class_counts, views), strict=True)):
        present = round(view.present * count)
        if not present or not view.alone:
            chances.append(0.0)
        elif sampler == "random":
            chances.append(view.alone * _none_drawn(sum(class_counts) - 1, present - 1, batch_size - 1))
        else:
            dealt = _dealt(tuple(class_counts), batch_size, sampler, seed)[:, label]
            none = [_none_drawn(count - 1, present - 1, int(rows) - 1) for rows in dealt]
            chances.append(view.alone * float(np.average(none, weights=dealt)))
    return chances


def same_label_share(class_counts: Sequence[int], batch_size: int, sampler: str, *, seed: int = 0) -> float:
    """Return the expected share of the pairs of texts in a batch that have the same label, in [0, 1].

    Contrast without labels pushes them apart. Arguments are as in `expected_positives`.
    """
    companions = expected_positives(class_counts, batch_size, sampler, seed=seed)
    shares = class_shares(class_counts, batch_size, sampler, seed=seed)
    return float(np.dot(shares, companions)) / max(1, batch_size - 1)


def class_shares(class_counts: Sequence[int], batch_size: int, sampler: str, *, seed: int = 0) -> list[float]:
    """Return the share of each class among the texts of batches, and so in a queue; the shares sum to 1."""
    if sampler == "random":
        return [count / sum(class_counts) for count in class_counts]
    dealt = _dealt(tuple(class_counts), batch_size, sampler, seed)
    return [float(share) for share in dealt.sum(0) / dealt.sum()]


def _views(class_counts: Sequence[int], views: int | Sequence[ClassViews]) -> Sequence[ClassViews]:
    if not isinstance(views, int):
        return views
    return [ClassViews(views, views - 1.0, views, float(views == 1), 1.0)] * len(class_counts)


@lru_cache(maxsize=32)
def _dealt(class_counts: tuple[int, ...], batch_size: int, sampler: str, seed: int) -> NDArray[np.int64]:
    """Count the rows of each class in a run's first batches, [batches, C]; a class without rows has none."""
    labels = np.repeat(np.arange(len(class_counts)), class_counts)
    batches = make_sampler(sampler, labels.tolist(), batch_size, seed)
    assert not isinstance(batches, RandomSampler)
    rounds = -(-COUNTED_BATCHES // batches.batches_per_round)
    steps = range(1, rounds * batches.batches_per_round + 1)
    return np.array([np.bincount(labels[batches.rows(step)], minlength=len(class_counts)) for step in steps])


def _none_drawn(others: int, wanted: int, draws: int) -> float:
    """Return the chance that `draws` of the `others`, without replacement, include none of the `wanted`."""
    draw = np.arange(draws)
    chances = (others - wanted - draw) / np.maximum(1, others - draw)
    return float(np.prod(np.clip(chances, 0.0, 1.0)))


class TokenCounts(NamedTuple):
    """Tokens that the encoder reads of some training texts, without special ones, with the labels of these texts.

    `exact` is False if they are estimated from characters because the tokenizer is not on this machine yet.
    """

    labels: tuple[int, ...]
    tokens: tuple[int, ...]
    exact: bool


def count_tokens(encoder_id: str, train: Split, max_length: int) -> TokenCounts:
    """Count the tokens of up to COUNTED_TEXTS training texts.

    Raises: EncoderError or ConfigError for an encoder that cannot be read.
    """
    rows = np.linspace(0, len(train) - 1, min(COUNTED_TEXTS, len(train))).astype(int)
    chosen = train.take([int(row) for row in rows])
    exact = tokenizer_file(encoder_id) is not None
    if exact:
        empty = "" if chosen.seconds is None else ("", "")
        special, *counts = token_counts(encoder_id, [empty, *chosen.inputs]).counts
    else:
        special, counts = SPECIAL_TOKENS, [int(count) for count in estimated_tokens(chosen.display_texts, len(chosen))]
    tokens = tuple(max(0, min(max_length, count) - special) for count in counts)
    return TokenCounts(tuple(chosen.labels), tokens, exact)


def vectors_of(tokens: int, term: TermPlan) -> int:
    """Return the number of vectors that represent a text of this length: at most k per pass, or its clusters.

    A text with fewer tokens than clusters has none.
    """
    chosen, clusters = (
        min(tokens, integer_setting(term.term.parameters, "k")),
        integer_setting(term.term.parameters, "clusters"),
    )
    of_a_pass = chosen if not clusters else clusters if chosen >= clusters else 0
    return of_a_pass * len(term.groups[0])


def token_class_views(counted: TokenCounts, term: TermPlan, classes: int) -> list[ClassViews]:
    """Return the ClassViews of each class; a class without counted texts uses the texts of all classes."""
    vectors = [vectors_of(tokens, term) for tokens in counted.tokens]
    of_class: list[list[int]] = [[] for _ in range(classes)]
    for label, found in zip(counted.labels, vectors, strict=True):
        of_class[label].append(found)
    return [class_views(found or vectors) for found in of_class]
