"""What moved between two frames, and how firmly each example lies with its class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.representation.geometry import Whole, checked_labels, checked_rows, normalised

Numbers = NDArray[np.float64]

# A mean of unit vectors shorter than this points nowhere: what is left of it is rounding.
NOWHERE = 1e-12


class Centroids(NamedTuple):
    """The centroids of the classes.

    Attributes:
        vectors: [C, d] means of the normalised rows of a class, zeros where it has none; not normalised again.
        present: [C] bool, whether the class has any.
    """

    vectors: Numbers
    present: NDArray[np.bool_]


def moved(before: ArrayLike, after: ArrayLike) -> Numbers:
    """How far each example's vector turned between two frames [N, d]: 1 − cosine, from 0 to 2.

    It is half the squared distance of the normalised rows, so that a vector that only got longer gives about 0, not
    rounding; a zero row against any other gives 1/2.
    Raises: ValueError when the shapes differ.
    """
    first, second = checked_rows(before, "before"), checked_rows(after, "after")
    if first.shape != second.shape:
        raise ValueError(f"after = shape {list(second.shape)}: expected {list(first.shape)}, that of the frame before")
    apart = normalised(second) - normalised(first)
    return np.einsum("nd,nd->n", apart, apart) / 2


def class_centroids(embeddings: ArrayLike, labels: ArrayLike, classes: int) -> Centroids:
    """The mean of the normalised rows of each class.

    Args:
        embeddings: [N, d].
        labels: [N], −1 where unknown: that row belongs to no class.
        classes: C.
    Raises: ValueError naming the argument, its value and what is expected.
    """
    rows = checked_rows(embeddings)
    truth = checked_labels(labels, len(rows))
    if (truth >= classes).any():
        raise ValueError(f"labels = {truth.max()}: expected numbers below classes = {classes}")
    sums, counts = _class_sums(normalised(rows), truth, classes)
    return Centroids(sums / np.maximum(counts, 1)[:, None], counts > 0)


def margins(embeddings: ArrayLike, labels: ArrayLike) -> Numbers:
    """Cosine to the own class's centroid minus the highest cosine to another's: below 0 an example lies with others.

    Centroids are those of `class_centroids`; the own one is taken without the example itself (leave-one-out), or a
    class of few would hold its members by themselves.

    Args:
        embeddings: [N, d].
        labels: [N], −1 where unknown.
    Returns: [N] from −2 to 2; NaN where the label is unknown, nobody else has it or there is no other class.
    """
    rows = checked_rows(embeddings)
    truth = checked_labels(labels, len(rows))
    result = np.full(len(rows), np.nan)
    known = np.flatnonzero(truth >= 0)
    names, own = np.unique(truth[known], return_inverse=True)
    if len(names) < 2:
        return result
    z = normalised(rows[known])
    sums, counts = _class_sums(z, own, len(names))
    cosines = z @ _directions(sums, counts).T  # [known, C]
    cosines[np.arange(len(z)), own] = -np.inf
    to_own = np.einsum("nd,nd->n", z, _directions(sums[own] - z, counts[own]))
    result[known] = np.where(counts[own] > 1, to_own - cosines.max(1), np.nan)
    return result


def _class_sums(z: Numbers, labels: Whole, classes: int) -> tuple[Numbers, Whole]:
    """[C, d] sums of rows and [C] how many they are."""
    members = (labels[:, None] == np.arange(classes)).astype(np.float64)
    return members.T @ z, members.sum(0).astype(np.int64)


def _directions(sums: Numbers, counts: Whole) -> Numbers:
    lengths = np.linalg.norm(sums, axis=1)
    return normalised(np.where((lengths > NOWHERE * counts)[:, None], sums, 0.0))
