"""Expected positives per anchor, and anchors without any, from batches simulated before a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.tasks.batches import ClassTurns

# Number of class-balanced batches to simulate: their shares follow from turns and sizes, not from a formula.
COUNTED_BATCHES = 512


class ClassViews(NamedTuple):
    """Numbers of vectors that represent the texts of a class.

    If texts differ in their numbers of vectors, `own` and `other` are means over anchors: each vector is one.

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
        views: vectors of every text, or the `class_views` of each class.
        seed: of the run.
    """
    texts = _other_texts(class_counts, batch_size, sampler, seed)
    return [found * view.other + view.own for found, view in zip(texts, _views(class_counts, views), strict=True)]


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


def class_shares(class_counts: Sequence[int], batch_size: int, sampler: str, *, seed: int = 0) -> list[float]:
    """Return the share of each class in the texts of batches, and so in a queue of past batches; they sum to 1."""
    if sampler == "random":
        return [count / sum(class_counts) for count in class_counts]
    dealt = _dealt(tuple(class_counts), batch_size, sampler, seed)
    return [float(share) for share in dealt.sum(0) / dealt.sum()]


def _views(class_counts: Sequence[int], views: int | Sequence[ClassViews]) -> Sequence[ClassViews]:
    if not isinstance(views, int):
        return views
    return [ClassViews(views, views - 1.0, views, float(views == 1), 1.0)] * len(class_counts)


def _other_texts(class_counts: Sequence[int], batch_size: int, sampler: str, seed: int) -> list[float]:
    """Return the expected number of other texts of an anchor's class in its batch, for each class."""
    if sampler == "random":
        others = max(1, sum(class_counts) - 1)
        return [(batch_size - 1) * max(0, count - 1) / others for count in class_counts]
    dealt = _dealt(tuple(class_counts), batch_size, sampler, seed)
    pairs, anchors = (dealt * (dealt - 1)).sum(0), dealt.sum(0)
    return [float(found) for found in pairs / np.maximum(1, anchors)]


@lru_cache(maxsize=32)
def _dealt(class_counts: tuple[int, ...], batch_size: int, sampler: str, seed: int) -> NDArray[np.int64]:
    """Count the rows of each class in a run's first batches, [batches, C]; a class without rows has none."""
    present = [label for label, count in enumerate(class_counts) if count]
    if sampler == "balanced":  # shares repeat after C batches
        dealt = np.arange(len(present) + 1)[:, None] * batch_size
        found = np.diff((dealt + len(present) - 1 - np.arange(len(present))) // len(present), axis=0)
    else:
        turns = ClassTurns([class_counts[label] for label in present], batch_size, seed)
        rounds = -(-COUNTED_BATCHES // turns.batches_per_round)
        found = np.zeros((rounds * turns.batches_per_round, len(present)), dtype=np.int64)
        for batch, rows in enumerate(found):
            for share in turns.shares(batch + 1):
                rows[share.label] = share.rows
    every = np.zeros((len(found), len(class_counts)), dtype=np.int64)
    every[:, present] = found
    return every


def _none_drawn(others: int, wanted: int, draws: int) -> float:
    """Return the chance that `draws` of the `others`, without replacement, include none of the `wanted`."""
    draw = np.arange(draws)
    chances = (others - wanted - draw) / np.maximum(1, others - draw)
    return float(np.prod(np.clip(chances, 0.0, 1.0)))
