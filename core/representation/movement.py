"""Movement of examples between two frames, and their margins between classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.representation.geometry import Array, Whole, normalised

Numbers = NDArray[np.float64]

# A mean of unit vectors shorter than this has no direction, only rounding errors.
NOWHERE = 1e-12


class Centroids(NamedTuple):
    """The centroids of the classes.

    Attributes:
        vectors: [C, d] means of the normalised rows of each class, zeros for a class without rows; not normalised.
        present: [C] bool, whether the class has rows.
    """

    vectors: Numbers
    present: NDArray[np.bool_]


def cosine_distances(before: Array, after: Array) -> Numbers:
    """Measure how far each example's vector turned between two frames [N, d]: 1 − cosine, from 0 to 2.

    Computed as half the squared distance of the normalised rows, which gives about 0 without cancellation if only the
    length of a vector changed. A zero row and a non-zero row give 1/2.
    """
    apart = normalised(after) - normalised(before)
    return np.einsum("nd,nd->n", apart, apart) / 2


def class_centroids(embeddings: Array, labels: ArrayLike, classes: int) -> Centroids:
    """Compute the mean of the normalised rows of each class.

    Args:
        embeddings: [N, d].
        labels: [N], −1 for an unknown label; such a row belongs to no class.
        classes: C.
    """
    sums, counts = _class_sums(normalised(embeddings), np.asarray(labels), classes)
    return Centroids(sums / np.maximum(counts, 1)[:, None], counts > 0)


def margins(embeddings: Array, labels: ArrayLike) -> Numbers:
    """Cosine to the centroid of the example's class minus the highest cosine to another centroid.

    If it is negative, another centroid is nearer. Centroids are those of `class_centroids`, but the centroid of the
    example's class leaves out the example itself (leave-one-out). Otherwise the members of a small class would attract
    themselves.

    Args:
        embeddings: [N, d].
        labels: [N], −1 for an unknown label.
    Returns: [N] from −2 to 2; NaN if the label is unknown, if no other example has it, or if there is no other class.
    """
    truth, result = np.asarray(labels), np.full(len(embeddings), np.nan)
    known = np.flatnonzero(truth >= 0)
    names, own = np.unique(truth[known], return_inverse=True)
    if len(names) < 2:
        return result
    z = normalised(embeddings[known])
    sums, counts = _class_sums(z, own, len(names))
    cosines = z @ _directions(sums, counts).T  # [known, C]
    cosines[np.arange(len(z)), own] = -np.inf
    to_own = np.einsum("nd,nd->n", z, _directions(sums[own] - z, counts[own]))
    result[known] = np.where(counts[own] > 1, to_own - cosines.max(1), np.nan)
    return result


def _class_sums(z: Numbers, labels: Whole, classes: int) -> tuple[Numbers, Whole]:
    """Return the sums [C, d] and the counts [C] of the rows of each class."""
    members = (labels[:, None] == np.arange(classes)).astype(np.float64)
    return members.T @ z, members.sum(0).astype(np.int64)


def _directions(sums: Numbers, counts: Whole) -> Numbers:
    lengths = np.linalg.norm(sums, axis=1)
    return normalised(np.where((lengths > NOWHERE * counts)[:, None], sums, 0.0))
