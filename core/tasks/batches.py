"""Rows of each batch: a pure function of seed and step, so that a resumed run needs no sampler state.

Batches are random. If they were sorted by length, length would determine the negatives of a contrastive loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

# A text needs another of its class for a positive, and a second class for negatives.
ROWS_OF_A_CLASS = 2
SMALLEST_BALANCED = 2 * ROWS_OF_A_CLASS
# Samplers with at least two rows of each class in a batch, and the maximum number of classes there.
CLASSES_AT_ONCE: Mapping[str, int | None] = {"class_balanced": None, "two_classes": 2}


class RandomSampler:
    """A sampler that draws every row once per epoch, in random order.

    Rows that do not fill a last batch are left out of the epoch.
    """

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.steps_per_epoch = max(1, rows // batch_size)
        self._batch_size = batch_size
        self._order = lru_cache(maxsize=1)(lambda epoch: np.random.default_rng([seed, epoch]).permutation(rows))

    def rows(self, step: int) -> list[int]:
        """Return the rows of a step's batch. Steps are counted from 1."""
        epoch, place = divmod(step - 1, self.steps_per_epoch)
        start = place * self._batch_size
        return [int(row) for row in self._order(epoch)[start : start + self._batch_size]]


class ClassBalancedSampler:
    """A sampler of batches with P classes and at least two rows of each, in shares as equal as possible.

    P is the least of ⌊B/2⌋, the number of classes, and `most` if given. If not all classes fit, they take turns: in a
    round of ⌈C/P⌉ batches every class has one. Free places in a round's last batch go to the first classes of the
    round. These rotate from round to round, so that each class is among them equally often. The other classes are in
    random order.

    No row occurs twice in a batch: a class with fewer rows than its share gives all its rows, and the other classes
    fill the batch. A class with a single row has no positive. Within a class, rows are drawn in turn.
    """

    def __init__(self, labels: Sequence[int], batch_size: int, seed: int, most: int | None = None) -> None:
        values = np.asarray(labels)
        self.steps_per_epoch = max(1, len(values) // batch_size)
        self._batch_size, self._seed = batch_size, seed
        self._members = [np.flatnonzero(values == label) for label in np.unique(values)]
        self._sizes, classes = [len(members) for members in self._members], len(self._members)
        self._together = min(classes, max(1, batch_size // ROWS_OF_A_CLASS), most or classes)
        self.batches_per_round = -(-classes // self._together)
        all_meet = self.batches_per_round == 1
        # If every batch has all classes, the first classes get the rows that do not divide evenly.
        self._first = batch_size % classes if all_meet else self.batches_per_round * self._together - classes
        self._level = _level(self._sizes, batch_size) if all_meet else batch_size // self._together
        self._cycle = np.random.default_rng(seed).permutation(classes)
        self._place = np.argsort(self._cycle)
        self._round = lru_cache(maxsize=2)(self._drawn)
        self._order = lru_cache(maxsize=2 * classes)(self._shuffled)

    def rows(self, step: int) -> list[int]:
        number, batch = divmod(step - 1, self.batches_per_round)
        classes, start, together = len(self._sizes), batch * self._together, self._together
        order = np.roll(self._round(number), -start)
        sizes = [self._sizes[label] for label in order[:together]]
        while sum(sizes) < self._batch_size and together < classes:  # these classes cannot fill the batch
            sizes.append(self._sizes[order[together]])
            together += 1
        rows: list[int] = []
        for place, share in enumerate(_equal_shares(sizes, self._batch_size)):
            label = int(order[place])
            turn = self._turns_before(number, label) + (start + place >= classes)
            # A class advances by this number of rows per turn. Further rows are repeated in its next turn, and rows
            # that do not fill a last turn are left out until its next shuffle.
            width = min(self._sizes[label], self._level)
            shuffles, begun = divmod(turn, self._sizes[label] // width)
            wanted = np.arange(begun * width, begun * width + share)
            rows += self._order(label, shuffles).take(wanted, mode="wrap").tolist()
        return rows

    def _turns_before(self, number: int, label: int) -> int:
        """Count the turns of a class before a round: one per round, and one more if it was among the first classes."""
        if self.batches_per_round == 1:
            return number
        classes = len(self._sizes)
        return number + (number * self._first + classes - 1 - int(self._place[label])) // classes

    def _drawn(self, number: int) -> Rows:
        """Return the classes of a round in order."""
        turned = np.roll(self._cycle, -(number * self._first % len(self._cycle)))
        first, others = turned[: self._first], turned[self._first :]
        return np.concatenate([first, np.random.default_rng([self._seed, number]).permutation(others)])

    def _shuffled(self, label: int, shuffles: int) -> Rows:
        return np.random.default_rng([self._seed, label, shuffles]).permutation(self._members[label])


def _equal_shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide `total` into shares as equal as the sizes allow. The first classes with rows left get the remainder."""
    level = _level(sizes, total)
    shares = [min(size, level) for size in sizes]
    left = min(total, sum(sizes)) - sum(shares)
    for place in [i for i, size in enumerate(sizes) if size > level][:left]:
        shares[place] += 1
    return shares


def _level(sizes: Sequence[int], total: int) -> int:
    """Compute the largest n for which n rows of each class, or all rows of smaller classes, do not exceed `total`."""
    left, level = total, 0
    for smaller, size in enumerate(sorted(sizes)):
        level = left // (len(sizes) - smaller)
        if size > level:
            break
        left -= size
    return level


class EqualSharesSampler:
    """The sampler "balanced" of earlier versions, kept so that their runs resume on the same curve.

    Within a batch, class sizes differ by at most one. If there are as many classes as rows in a batch, no text has a
    positive. A row of a small class may occur twice.
    """

    def __init__(self, labels: Sequence[int], batch_size: int, seed: int) -> None:
        values = np.asarray(labels)
        self.steps_per_epoch = max(1, len(values) // batch_size)
        self._batch_size = batch_size
        self._seed = seed
        self._classes = [np.flatnonzero(values == label) for label in np.unique(values)]
        self.batches_per_round = len(self._classes)  # then the shares repeat
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
        """Count the rows of a class in the first `steps` batches, if rows are dealt to the classes in turn."""
        dealt, classes = steps * self._batch_size, len(self._classes)
        return (dealt + classes - 1 - label) // classes

    def _shuffled(self, label: int, turn: int) -> Rows:
        return np.random.default_rng([self._seed, label, turn]).permutation(self._classes[label])


Sampler = RandomSampler | ClassBalancedSampler | EqualSharesSampler


def make_sampler(name: str, labels: Sequence[int], batch_size: int, seed: int) -> Sampler:
    """Create the sampler that a TaskConfig names."""
    if name in CLASSES_AT_ONCE:
        return ClassBalancedSampler(labels, batch_size, seed, CLASSES_AT_ONCE[name])
    if name == "balanced":
        return EqualSharesSampler(labels, batch_size, seed)
    return RandomSampler(len(labels), batch_size, seed)
