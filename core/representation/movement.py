"""Movement of examples between two frames, and their margins between classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.representation.geometry import Array, Whole, normalised

Numbers = NDArray[np.float64]

# A mean of unit vectors shorter than this has no direction, only rounding errors.
NOWHERE = 1e-12


def cosine_distances(before: Array, after: Array) -> Numbers:
    """Measure how far each example's vector turned between two frames [N, d]: 1 − cosine, from 0 to 2.

    Computed as half the squared distance of the normalised rows, which gives about 0 without cancellation if only the
    length of a vector changed. A zero row and a non-zero row give 1/2.
    """
    apart = normalised(after) - normalised(before)
    return np.einsum("nd,nd->n", apart, apart) / 2


def class_centroids(embeddings: Array, labels: ArrayLike, classes: int) -> Numbers:
    """Compute the mean of the normalised rows of each class.

    Args:
        embeddings: [N, d].
        labels: [N].
        classes: C.
    Returns: [C, d], zeros for a class without rows; not normalised.
    """
    sums, counts = _class_sums(normalised(embeddings), np.asarray(labels), classes)
    return sums / np.maximum(counts, 1)[:, None]


def margins(embeddings: Array, labels: ArrayLike) -> Numbers:
    """Cosine to the centroid of the example's class minus the highest cosine to another centroid.

    If it is negative, another centroid is nearer. Centroids are those of `class_centroids`, but the centroid of the
    example's class leaves out the example itself (leave-one-out). Otherwise the members of a small class would attract
    themselves.

    Args:
        embeddings: [N, d].
        labels: [N].
    Returns: [N] from −2 to 2; NaN if no other example has the label, or if there is no other class.
    """
    names, own = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return np.full(len(embeddings), np.nan)
    z = normalised(embeddings)
    sums, counts = _class_sums(z, own, len(names))
    cosines = z @ _directions(sums, counts).T  # [N, C]
    cosines[np.arange(len(z)), own] = -np.inf
    to_own = np.einsum("nd,nd->n", z, _directions(sums[own] - z, counts[own]))
    return np.where(counts[own] > 1, to_own - cosines.max(1), np.nan)


def _class_sums(z: Numbers, labels: Whole, classes: int) -> tuple[Numbers, Whole]:
    """Return the sums [C, d] and the counts [C] of the rows of each class."""
    members = (labels[:, None] == np.arange(classes)).astype(np.float64)
    return members.T @ z, members.sum(0).astype(np.int64)


def _directions(sums: Numbers, counts: Whole) -> Numbers:
    lengths = np.linalg.norm(sums, axis=1)
    return normalised(np.where((lengths > NOWHERE * counts)[:, None], sums, 0.0))
