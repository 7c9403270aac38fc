"""Clustering without labels; cluster numbers stay stable from frame to frame."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from core.representation.geometry import Array, Whole

STARTS, SEED = 10, 0


def cluster(embeddings: Array, count: int, previous: ArrayLike | None = None) -> Whole:
    """Cluster the raw vectors by k-means (10 starts, seed 0).

    Args:
        embeddings: [N, d].
        count: ≥ 1; fewer clusters are found if there are fewer distinct vectors.
        previous: [N] clusters of the previous frame, or labels. Numbers are assigned so that as many examples as
            possible keep theirs (Hungarian method), and an unmatched cluster gets the lowest free number. If None,
            clusters are numbered in the order of their first examples.
    Returns: [N] cluster numbers from 0.
    """
    if not len(embeddings):
        return np.empty(0, np.int64)
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # scikit-learn warns if it finds fewer clusters because there are fewer distinct vectors.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(n_clusters=min(count, len(embeddings)), n_init=STARTS, random_state=SEED).fit(embeddings)
    _, first, inverse = np.unique(fitted.labels_, return_index=True, return_inverse=True)
    found = np.argsort(np.argsort(first))[inverse]
    return found if previous is None else match_numbers(found, np.asarray(previous))


def match_numbers(clusters: Whole, previous: Whole) -> Whole:
    """Renumber clusters [N] by the best match with `previous` [N]; see `cluster`."""
    from scipy.optimize import linear_sum_assignment

    ours, theirs = int(clusters.max()) + 1, int(previous.max()) + 1
    shared = np.zeros((ours, theirs), np.int64)
    np.add.at(shared, (clusters, previous), 1)
    numbers = np.full(ours, -1)
    for own, other in zip(*linear_sum_assignment(shared, maximize=True), strict=True):
        if shared[own, other]:  # a match without shared examples does not count
            numbers[own] = other
    free = iter(sorted(set(range(ours + theirs)) - set(numbers.tolist())))
    return np.array([next(free) if number < 0 else number for number in numbers], np.int64)[clusters]
