"""Alignment of one map with another, so that points move only because the model changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array

Points = NDArray[np.float32]


def align(points: Array, onto: Array) -> NDArray[np.float64]:
    """Rotate and reflect centred `points` [N, D] so that they lie as close to `onto` as possible.

    Source: Schönemann 1966, the orthogonal Procrustes problem.
    """
    left, _, right = np.linalg.svd(np.asarray(points, np.float64).T @ (onto - np.mean(onto, axis=0, dtype=np.float64)))
    return points @ (left @ right)


def centred(points: Array) -> Points:
    """Shift `points` [N, D] to mean 0."""
    exact = np.asarray(points, np.float64)
    return (exact - exact.mean(0)).astype(np.float32)


def align_to_previous(points: Array, onto: Array, farthest: float = np.inf) -> NDArray[np.float64]:
    """Rotate and reflect `points` [N, D] onto the previous map, and shift them to its centre.

    Args: farthest: limit on a point's distance from its previous position, in widths of that map (its longest side).
    """
    exact, start = np.asarray(points, np.float64), np.asarray(onto, np.float64)
    middle = start.mean(0)
    way = align(exact - exact.mean(0), start) - (start - middle)
    if np.isfinite(farthest):
        lengths = np.linalg.norm(way, axis=1, keepdims=True)
        most = farthest * np.ptp(start, axis=0).max()
        way *= np.divide(most, lengths, out=np.ones_like(lengths), where=lengths > most)
    return start + way
