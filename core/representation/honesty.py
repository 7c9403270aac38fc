"""How far a flat map can be believed: whether neighbours on it are neighbours in the original space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.representation.array_checks import Whole, checked_rows
from core.representation.neighbours import all_neighbours, checked_k, key_blocks


@dataclass(frozen=True, slots=True)
class Honesty:
    """All from 0 to 1, and 1 is best.

    Attributes:
        trustworthiness: mean over points; it falls the farther away a point's neighbours on the map really are.
        overlap: mean share of the k nearest on the map that are among the k nearest in the original space.
        per_point_trustworthiness, per_point_overlap: [N].
        k: how many neighbours were looked at.
    """

    trustworthiness: float
    overlap: float
    per_point_trustworthiness: NDArray[np.floating]
    per_point_overlap: NDArray[np.floating]
    k: int


def map_honesty(embeddings: ArrayLike, points: ArrayLike, k: int = 10) -> Honesty:
    """Trustworthiness and k-NN overlap of a map.

    Neighbours in the original space are by cosine, which orders as euclidean distance of normalised rows does; on the
    map they are euclidean. Ties fall to the lowest number. Exact, block by block.

    Args:
        embeddings: [N, d].
        points: [N, 2] or [N, 3].
        k: ≥ 1, lowered to the largest number below N/2, as the measure demands.
    Returns: fewer than three points cannot be out of order: 1 throughout, with k = 0.
    Raises: ValueError naming the argument, its value and what is expected.
    Source: Venna & Kaski 2001, eq. 1 (trustworthiness), a point's share scaled so that their mean is the whole.
    """
    rows, flat = checked_rows(embeddings), checked_rows(points, "points")
    if len(rows) != len(flat):
        raise ValueError(f"points = {len(flat)} rows: expected {len(rows)}, as many as embeddings")
    n = len(rows)
    k = min(checked_k(k), max((n - 1) // 2, 0))
    if k == 0:
        return Honesty(1.0, 1.0, np.ones(n), np.ones(n), 0)
    ranks = _ranks(rows, all_neighbours(flat, k, "euclidean"))
    worst = k * (2 * n - 3 * k - 1) / 2  # the k farthest as neighbours
    trust = 1 - np.maximum(ranks - k, 0).sum(1) / worst
    overlap = (ranks <= k).mean(1)
    return Honesty(float(trust.mean()), float(overlap.mean()), trust, overlap, k)


def _ranks(rows: NDArray[np.floating], chosen: Whole) -> Whole:
    """Of every row's chosen others [N, k], the how-manieth nearest by cosine each is; the nearest is 1."""
    ranks = np.empty_like(chosen)
    for place, keys in key_blocks(rows, "cosine"):
        theirs = np.take_along_axis(keys, chosen[place], axis=1)
        for column in range(chosen.shape[1]):
            ranks[place, column] = np.count_nonzero(keys <= theirs[:, column, None], axis=1)
    return ranks
