"""Equal vectors, which a map lays out once.

Copies have no neighbours but each other, so that a layout of every copy scatters one vector over the map, and a hundred
of them push like a hundred examples. A map is therefore laid out over the distinct vectors, each counted once however
many copies it has, and copies share its place: adding a copy of an example moves no other example. umap-learn offers
the same as `unique=True`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array, normalised
from core.representation.neighbours import SAME
from core.representation.projections.graph import Graph, Indices
from core.representation.projections.pca import pca_map

# How far vectors that shared a place on the map before start from it, in widths of that map.
APART = 1e-3


@dataclass(frozen=True, slots=True)
class Copies:
    """Which of N rows are copies of which.

    Attributes:
        first: [M] the first row of each distinct vector, ascending.
        of: [N] which of the M vectors each row is.
    """

    first: Indices
    of: Indices

    def mean(self, points: Array) -> NDArray[np.float64]:
        """The mean place of each vector's copies: [N, D] → [M, D]."""
        sums = np.zeros((len(self.first), points.shape[1]))
        np.add.at(sums, self.of, points)
        return sums / np.bincount(self.of)[:, None]

    def over_rows(self, graph: Graph) -> Graph:
        """A graph over the M vectors as one over the N rows, in which a vector's first row has its edges."""
        size = len(self.of)
        return Graph(size, self.first[graph.rows] * size + self.first[graph.columns], graph.weights)


def find_copies(embeddings: Array) -> Copies:
    """Rows [N, H] whose normalised vectors lie within 1e-6, where single precision ends, of an earlier one's.

    The earlier one is itself no copy, so that distinct vectors are at least 1e-6 apart, and copies at most 2e-6.
    """
    z = normalised(embeddings)
    direction = np.random.default_rng(0).normal(size=z.shape[1])
    line = z @ (direction / np.linalg.norm(direction))  # rows are never farther apart on it than they are
    order = np.argsort(line, kind="stable")
    ranked = line[order]
    near = np.diff(ranked, prepend=-np.inf, append=np.inf) < SAME  # [N + 1]
    original = np.arange(len(z))
    for row in np.sort(order[near[:-1] | near[1:]]):
        if original[row] == row:
            low, high = np.searchsorted(ranked, [line[row] - SAME, line[row] + SAME])
            later = order[low:high]
            later = later[(later > row) & (original[later] == later)]
            original[later[np.linalg.norm(z[later] - z[row], axis=1) < SAME]] = row
    first, of = np.unique(original, return_inverse=True)
    return Copies(first, of)


def drawn_apart(places: Array, embeddings: Array) -> Array:
    """Places [M, D] of distinct vectors [M, H], no two of them on one spot.

    Points on one spot that have no neighbours elsewhere feel the same forces, and would stay together for ever. Those
    that share a place are put around it as their own principal components lie, a thousandth of the map's width away.
    """
    _, spot, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    result, width = np.array(places, np.float64), np.ptp(places, axis=0).max() or 1.0
    for shared in np.flatnonzero(counts > 1):
        members = np.flatnonzero(spot == shared)
        around = pca_map(embeddings[members], dims=places.shape[1])
        result[members] += APART * width * around / np.abs(around).max()
    return result
