"""Turn one map onto another: only what the model moved is left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array

Points = NDArray[np.float32]


def align(points: Array, onto: Array) -> NDArray[np.float64]:
    """Turn and mirror centred `points` [N, D] so that they lie as near to `onto` as they can.

    Source: Schönemann 1966, the orthogonal Procrustes problem.
    """
    left, _, right = np.linalg.svd(np.asarray(points, np.float64).T @ (onto - np.mean(onto, axis=0)))
    return points @ (left @ right)


def settled(points: Array, onto: Array | None, farthest: float = np.inf) -> Points:
    """`points` [N, D] centred, turned and mirrored onto the map before, where there is one.

    Args: farthest: no point goes farther from its place before, in widths of that map (its longest side).
    """
    result = np.asarray(points, np.float64) - np.mean(points, axis=0)
    if onto is not None:
        start = np.asarray(onto, np.float64) - np.mean(onto, axis=0)
        way = align(result, start) - start
        lengths = np.linalg.norm(way, axis=1, keepdims=True)
        most = farthest * np.ptp(start, axis=0).max() if np.isfinite(farthest) else np.inf
        result = start + way * np.divide(most, lengths, out=np.ones_like(lengths), where=lengths > most)
        result -= result.mean(0)
    return result.astype(np.float32)
