"""The weighted neighbour graph that determines the layout of a map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.representation.neighbours import SAME

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

BISECTIONS = 64
CLOSE_ENOUGH = 1e-9


def bisect_rows(score: Callable[[Floats], Floats], target: float, rows: int) -> Floats:
    """Find the x > 0 of each row at which `score(x)` [rows], falling in x, meets the target; 2^63 if it never does."""
    low, high, x = np.zeros(rows), np.full(rows, np.inf), np.ones(rows)
    for _ in range(BISECTIONS):
        excess = score(x) - target
        if np.abs(excess).max(initial=0.0) < CLOSE_ENOUGH:
            break
        above = excess > 0
        low, high = np.where(above, x, low), np.where(above, high, x)
        x = np.where(np.isinf(high), 2 * low, (low + np.where(np.isinf(high), 0, high)) / 2)
    return np.minimum(x, 2.0**63)


def memberships(distances: Floats) -> Floats:
    """Compute the membership weight of each neighbour: exp(−(d − ρ)/σ), 1 for the nearest.

    ρ is a row's smallest non-zero distance. σ makes the row's weights sum to log2(k + 1), because UMAP counts a point
    among its own k + 1 neighbours. σ is at least a thousandth of the row's mean distance.

    Args:
        distances: [M, k], nearest first.
    Returns: [M, k].
    Source: McInnes et al. 2018, section 3.1, arXiv:1802.03426, and `smooth_knn_dist` of umap-learn.
    """
    rows, k = distances.shape
    if not k:
        return np.ones((rows, 0))
    rho = np.where(distances > 0, distances, np.inf).min(1)
    beyond = np.maximum(distances - np.where(np.isinf(rho), 0.0, rho)[:, None], 0.0)
    inverse = bisect_rows(lambda x: np.exp(-beyond * x[:, None]).sum(1), float(np.log2(k + 1)), rows)
    # A row without ρ has only copies as neighbours; it gets the mean over all rows.
    mean = np.where(np.isinf(rho), distances.mean(), distances.mean(1)) * k / (k + 1)
    narrowest = 1e-3 * np.maximum(mean, SAME)
    return np.exp(-beyond * np.minimum(inverse, 1 / narrowest)[:, None])


@dataclass(frozen=True, slots=True)
class Graph:
    """Weighted edges among N examples, in both directions.

    Attributes:
        size: N.
        keys: [E], row · N + column, ascending.
        weights: [E], > 0.
    """

    size: int
    keys: Indices
    weights: Floats

    @property
    def rows(self) -> Indices:
        return self.keys // self.size

    @property
    def columns(self) -> Indices:
        return self.keys % self.size

    @property
    def starts(self) -> Indices:
        """Offsets [N + 1]: the edges of row i are starts[i] to starts[i + 1] − 1."""
        return np.searchsorted(self.rows, np.arange(self.size + 1))

    @property
    def shares(self) -> Floats:
        """Weights [E] as shares of the weight of their row."""
        return self.weights / np.bincount(self.rows, self.weights, self.size)[self.rows]


def symmetric_graph(neighbours: Indices, weights: Floats, joined: Callable[[Floats, Floats], Floats]) -> Graph:
    """Build the graph of neighbour lists [N, k] with edge weights `joined(weight there, weight back)`, 0 if absent."""
    size, k = neighbours.shape
    rows, columns = np.repeat(np.arange(size), k), neighbours.ravel()
    keys, where = np.unique(np.concatenate([rows * size + columns, columns * size + rows]), return_inverse=True)
    there, back = np.zeros(len(keys)), np.zeros(len(keys))
    there[where[: size * k]], back[where[size * k :]] = weights.ravel(), weights.ravel()
    total = joined(there, back)
    return Graph(size, keys[total > 0], total[total > 0])


def changed_fraction(graph: Graph, before: Graph) -> float:
    """Fraction of two graphs' weight that differs: 1 − Σ min / Σ max over edges, from 0 (equal) to 1."""
    keys = np.union1d(graph.keys, before.keys)
    now, then = np.zeros(len(keys)), np.zeros(len(keys))
    now[np.searchsorted(keys, graph.keys)] = graph.weights
    then[np.searchsorted(keys, before.keys)] = before.weights
    most = np.maximum(now, then).sum()
    return float(1 - np.minimum(now, then).sum() / most) if most > 0 else 0.0
