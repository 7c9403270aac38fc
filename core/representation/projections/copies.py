"""Equal vectors, which share one position on a map.

Copies have no neighbours but each other. A layout of every copy would scatter one vector over the map, and a hundred
copies would repel like a hundred examples. A map is therefore laid out over the distinct vectors, each counted once,
and copies share one position. Adding a copy of an example moves no other example. umap-learn calls this
`unique=True`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array, normalised
from core.representation.neighbours import SAME
from core.representation.projections.graph import Graph, Indices


@dataclass(frozen=True, slots=True)
class Copies:
    """The M distinct vectors among N rows.

    Attributes:
        first: [M] the first row of each distinct vector, ascending.
        of: [N] the distinct vector of each row, 0 to M − 1.
    """

    first: Indices
    of: Indices

    def mean(self, points: Array) -> NDArray[np.float64]:
        """Average the positions of each vector's copies: [N, D] → [M, D]."""
        sums = np.zeros((len(self.first), points.shape[1]))
        np.add.at(sums, self.of, points)
        return sums / np.bincount(self.of)[:, None]

    def over_rows(self, graph: Graph) -> Graph:
        """Convert a graph over the M vectors to one over the N rows; a vector's first row gets its edges."""
        size = len(self.of)
        return Graph(size, self.first[graph.rows] * size + self.first[graph.columns], graph.weights)


def find_copies(embeddings: Array) -> Copies:
    """Find the rows [N, H] whose normalised vectors lie within 1e-6 (the limit of single precision) of an earlier row.

    The earlier row is not itself a copy, so distinct vectors are at least 1e-6 apart, and copies at most 2e-6.
    """
    z = normalised(embeddings)
    direction = np.random.default_rng(0).normal(size=z.shape[1])
    line = z @ (direction / np.linalg.norm(direction))  # a projection never increases distances
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
