"""Which rows a step sees: a pure function of seed and step, so that a resumed run needs no sampler state.

Batches are random. Length never chooses who meets whom: in a contrastive loss that would choose the negatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


class Sampler(Protocol):
    """Row numbers of a step's batch."""

    steps_per_epoch: int

    def rows(self, step: int) -> list[int]:
        """The batch of step 1, 2, …"""
        ...


class RandomSampler:
    """Every row once an epoch in random order; the rows that do not fill a last batch wait for the next epoch."""

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.steps_per_epoch = max(1, rows // batch_size)
        self._batch_size = batch_size
        self._order = lru_cache(maxsize=1)(lambda epoch: np.random.default_rng([seed, epoch]).permutation(rows))

    def rows(self, step: int) -> list[int]:
        epoch, place = divmod(step - 1, self.steps_per_epoch)
        start = place * self._batch_size
        return [int(row) for row in self._order(epoch)[start : start + self._batch_size]]


class BalancedSampler:
    """As many rows of each class as of the others in every batch, up to one.

    A small class comes round more often than a large one. Where the batch does not divide evenly, the classes take
    turns at the extra row.
    """

    def __init__(self, labels: Sequence[int], batch_size: int, seed: int) -> None:
        values = np.asarray(labels)
        self.steps_per_epoch = max(1, len(values) // batch_size)
        self._batch_size = batch_size
        self._seed = seed
        self._classes = [np.flatnonzero(values == label) for label in np.unique(values)]
        self._order = lru_cache(maxsize=2 * len(self._classes))(self._shuffled)

    def rows(self, step: int) -> list[int]:
        batch: list[int] = []
        for label, members in enumerate(self._classes):
            start, end = self._dealt(step - 1, label), self._dealt(step, label)
            for place in range(start, end):
                turn, offset = divmod(place, len(members))
                batch.append(int(self._order(label, turn)[offset]))
        return batch

    def _dealt(self, steps: int, label: int) -> int:
        """Rows of a class dealt in the first `steps` batches, when rows are dealt to the classes in turn."""
        dealt, classes = steps * self._batch_size, len(self._classes)
        return (dealt + classes - 1 - label) // classes

    def _shuffled(self, label: int, turn: int) -> Rows:
        return np.random.default_rng([self._seed, label, turn]).permutation(self._classes[label])


def make_sampler(name: str, labels: Sequence[int], batch_size: int, seed: int) -> Sampler:
    """The sampler a TaskConfig names."""
    if name == "balanced":
        return BalancedSampler(labels, batch_size, seed)
    return RandomSampler(len(labels), batch_size, seed)


def expected_positives(class_counts: Sequence[int], batch_size: int, sampler: str, views: int = 1) -> list[float]:
    """Expected number of positives per anchor in a batch, for each class.

    Random batches are drawn without replacement, so an anchor's B − 1 companions hold (B − 1)(n_c − 1)/(n − 1) of its
    class. Balanced ones hold k = ⌊B/C⌋ of every class, and one more of each of B mod C classes, which take turns. With
    V views every one of these texts counts V times, and the anchor has its own V − 1 others.
    """
    return [(texts + 1) * views - 1 for texts in _expected_texts(class_counts, batch_size, sampler)]


def _expected_texts(class_counts: Sequence[int], batch_size: int, sampler: str) -> list[float]:
    rows, classes = sum(class_counts), len(class_counts)
    if sampler == "balanced":
        k, extra = divmod(batch_size, classes)
        return [(extra * (k + 1) * k + (classes - extra) * k * (k - 1)) / batch_size] * classes
    return [(batch_size - 1) * (count - 1) / max(1, rows - 1) for count in class_counts]


def anchors_without_positive(class_counts: Sequence[int], batch_size: int, sampler: str, views: int = 1) -> list[float]:
    """For each class, the chance that an anchor has no positive in its batch (hypergeometric for random batches).

    With more than one view an anchor always has its own other view.
    """
    if views > 1:
        return [0.0] * len(class_counts)
    rows, classes = sum(class_counts), len(class_counts)
    if sampler == "balanced":
        k, extra = divmod(batch_size, classes)
        alone = extra if k == 0 else classes - extra if k == 1 else 0
        return [alone / batch_size] * classes
    chances = []
    for count in class_counts:
        others, companions = rows - count, batch_size - 1
        draws = np.arange(companions)
        chances.append(float(np.prod(np.clip((others - draws) / np.maximum(1, rows - 1 - draws), 0, 1))))
    return chances
