"""Nearest neighbours in the original space, and how well a flat map keeps them.

Neighbours are exact; ties go to the lowest row number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array, Whole, normalised

Metric = Literal["cosine", "euclidean"]

# Distances that differ by less than 1/GRID of the largest count as equal. Rounding depends on a row's position in a
# matrix product, and must not decide between two copies of a text.
GRID = 2.0**36
# Numbers in one block of a matrix of all pairs: 8 MiB in float64.
BLOCK_NUMBERS = 2**20
SELF = np.iinfo(np.int64).max
# Single precision separates unit vectors down to about this distance; closer vectors count as equal.
SAME = 1e-6
BLOCK_ROWS = 1024


class Neighbours(NamedTuple):
    """Nearest neighbours of one row or vector, nearest first.

    Attributes:
        indices: [k] row numbers.
        values: [k] cosine similarity (falling) or euclidean distance (rising).
    """

    indices: Whole
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Honesty:
    """The honesty of a flat map: how well it keeps neighbours, from 0 to 1, where 1 is best.

    Attributes:
        trustworthiness: mean over points; low if map neighbours of a point are far away in the original space.
        overlap: mean share of the k nearest on the map that are among the k nearest in the original space.
        per_point_trustworthiness, per_point_overlap: [N].
        k: number of neighbours compared.
    """

    trustworthiness: float
    overlap: float
    per_point_trustworthiness: NDArray[np.floating]
    per_point_overlap: NDArray[np.floating]
    k: int


class NeighbourIndex:
    """Index of rows for repeated nearest-neighbour queries."""

    def __init__(self, embeddings: Array, metric: Metric = "cosine") -> None:
        """Prepare the rows. Args: embeddings: [N, d], N ≥ 1."""
        self.metric = metric
        self._rows = _prepared(embeddings, metric)
        self._centre = self._rows.mean(0)
        self._scale = _scale(self._rows - self._centre, metric)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def width(self) -> int:
        """The number of dimensions, d."""
        return int(self._rows.shape[1])

    def nearest(self, of: int | Array, k: int) -> Neighbours:
        """Return the k rows nearest to row `of`, excluding the row itself, or to an external vector [d].

        Args: k: ≥ 1, at most N − 1 (N for a vector); larger values are reduced to the maximum.
        """
        own = int(of) if isinstance(of, int | np.integer) else None
        query = _prepared(np.asarray(of)[None], self.metric)[0] if own is None else self._rows[own]
        k = min(k, len(self) - (own is not None))
        if self.metric == "cosine":
            far = 1 - np.clip(np.einsum("nd,d->n", self._rows, query), -1, 1)
        else:
            apart = self._rows - query
            far = np.einsum("nd,nd->n", apart, apart)
        scale = max(self._scale, _scale(query[None] - self._centre, self.metric))
        keys = _keys(far, np.arange(len(self)), scale, len(self))
        if own is not None:
            keys[own] = SELF
        first = np.argsort(keys)[:k]
        return Neighbours(first, 1 - far[first] if self.metric == "cosine" else np.sqrt(far[first]))


def all_neighbours(embeddings: Array, k: int, metric: Metric = "cosine") -> Whole:
    """Find the k nearest neighbours of every row.

    Args:
        embeddings: [N, d].
        k: ≥ 1, lowered to N − 1 if larger.
    Returns: [N, k] row numbers, never the row's own.
    """
    k = min(k, max(len(embeddings) - 1, 0))
    found = np.empty((len(embeddings), k), np.int64)
    if k:
        for place, keys in key_blocks(embeddings, metric):
            found[place] = np.sort(np.partition(keys, k - 1, axis=1)[:, :k], axis=1) % len(embeddings)
    return found


def nearest_among(
    rows: NDArray[np.float64], among: NDArray[np.float64], k: int, *, itself: bool = False
) -> tuple[Whole, NDArray[np.float64]]:
    """Find the k nearest of `among` [N, H] for each of `rows` [M, H], nearest first, by exact Euclidean distance.

    Maps merge copies first, so the order of ties does not matter. At the few hundred rows of a live map, this is four
    to six times as fast as scikit-learn's brute force. At thousands of rows, brute force takes three quarters of the
    time.

    Args:
        k: at most N, or N − 1 with `itself`.
        itself: whether `rows` and `among` are the same, so that each row is excluded from its own neighbours.
    Returns: indices and distances, both [M, k]; a distance below 1e-6 is 0.
    """
    indices, distances = np.empty((len(rows), k), np.int64), np.empty((len(rows), k))
    lengths = (among * among).sum(1)
    for first in range(0, len(rows), BLOCK_ROWS):
        block = rows[first : first + BLOCK_ROWS]
        squares = (block * block).sum(1)[:, None] + lengths - 2 * block @ among.T  # [block, N]
        squares[squares < SAME * SAME] = 0.0
        if itself:
            squares[np.arange(len(block)), first + np.arange(len(block))] = np.inf
        some = np.argpartition(squares, k - 1, axis=1)[:, :k] if k else np.empty((len(block), 0), np.int64)
        order = np.argsort(np.take_along_axis(squares, some, 1), axis=1, kind="stable")
        found = np.take_along_axis(some, order, 1)
        indices[first : first + BLOCK_ROWS] = found
        distances[first : first + BLOCK_ROWS] = np.sqrt(np.take_along_axis(squares, found, 1))
    return indices, distances


def kept_neighbours(before: Whole, after: Whole) -> NDArray[np.float64]:
    """Compute the fraction of each point's neighbours that are neighbours in both frames.

    Args: before, after: [N, k] from `all_neighbours`, of two frames; the numbers in a row are distinct.
    Returns: [N] from 0 to 1; 1 if k is 0.
    """
    if not before.shape[1]:
        return np.ones(len(before))
    both = np.sort(np.concatenate([before, after], axis=1), axis=1)  # a kept neighbour occurs twice
    return (both[:, 1:] == both[:, :-1]).sum(1) / before.shape[1]


def map_honesty(embeddings: Array, points: Array, k: int = 10) -> Honesty:
    """Compute trustworthiness and k-NN overlap of a map.

    Neighbours in the original space are by cosine, which gives the same order as Euclidean distance of normalised rows.
    Neighbours on the map are Euclidean. Ties go to the lowest row number. Results are exact, computed in blocks.

    Args:
        embeddings: [N, d].
        points: [N, 2] or [N, 3].
        k: ≥ 1, lowered to the largest number below N/2, as the measure requires.
    Returns: the scores. Fewer than three points cannot be out of order, so all scores are 1, with k = 0.
    Source: Venna & Kaski 2001, eq. 1 (trustworthiness), with per-point values scaled to average to the map's value.
    """
    n = len(embeddings)
    k = min(k, max((n - 1) // 2, 0))
    if k == 0:
        return Honesty(1.0, 1.0, np.ones(n), np.ones(n), 0)
    near, ranks = all_neighbours(points, k, "euclidean"), np.empty((n, k), np.int64)
    for place, keys in key_blocks(embeddings, "cosine"):  # the nearest of all rows has rank 1
        theirs = np.take_along_axis(keys, near[place], axis=1)
        for column in range(k):
            ranks[place, column] = np.count_nonzero(keys <= theirs[:, column, None], axis=1)
    worst = k * (2 * n - 3 * k - 1) / 2  # the sum if the k farthest were the neighbours
    trust = 1 - np.maximum(ranks - k, 0).sum(1) / worst
    overlap = (ranks <= k).mean(1)
    return Honesty(float(trust.mean()), float(overlap.mean()), trust, overlap, k)


def key_blocks(rows: Array, metric: Metric) -> Iterator[tuple[slice, Whole]]:
    """Yield the slice of each block of b rows, and keys [b, N] that order all rows by distance, nearest first.

    A key is the distance as an integer, times N, plus the row's number. So no two keys of a row are equal, ties go to
    the lowest number, and the key modulo N is the row's number. The key of a row with itself is the largest int64.
    """
    z = _prepared(rows, metric)
    if metric == "euclidean":
        z = z - z.mean(0)
    squares, scale = np.einsum("nd,nd->n", z, z), _scale(z, metric)
    numbers = np.arange(len(z))
    step = max(1, BLOCK_NUMBERS // max(len(z), 1))
    for start in range(0, len(z), step):
        place = slice(start, min(start + step, len(z)))
        dots = z[place] @ z.T
        far = 1 - dots if metric == "cosine" else squares[place, None] + squares - 2 * dots
        keys = _keys(far, numbers, scale, len(z))
        keys[np.arange(len(keys)), numbers[place]] = SELF
        yield place, keys


def _prepared(rows: Array, metric: Metric) -> NDArray[np.float64]:
    return normalised(rows) if metric == "cosine" else rows.astype(np.float64)


def _scale(centred: Array, metric: Metric) -> float:
    """Return the unit of distances: 1 for cosines, else the largest squared distance from the centre."""
    if metric == "cosine":
        return 1.0
    return float(np.einsum("nd,nd->n", centred, centred).max(initial=0.0)) or 1.0


def _keys(far: NDArray[np.float64], numbers: Whole, scale: float, count: int) -> Whole:
    return np.rint(np.maximum(far, 0.0) * (GRID / scale)).astype(np.int64) * count + numbers
