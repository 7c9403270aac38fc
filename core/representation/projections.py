"""Flat maps that hold still: PCA of one frame, turned onto the frame before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array, normalised

Points = NDArray[np.float32]


def pca_map(embeddings: Array, previous: Points | None = None) -> Points:
    """The first two principal components of the normalised rows.

    Args:
        embeddings: [N, d].
        previous: [N, 2] map of the same points one frame earlier; the new one is turned and mirrored onto it
            (orthogonal Procrustes, no scaling), so that points move because the model moved.
    Returns: [N, 2], centred.
    """
    z = normalised(embeddings)
    z = z - z.mean(0)
    _, _, axes = np.linalg.svd(z, full_matrices=False)
    points = z @ axes[:2].T
    if points.shape[1] < 2:
        points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    points = _fixed_signs(points) if previous is None else align(points, previous)
    return points.astype(np.float32)


def align(points: Array, onto: Array) -> NDArray[np.float64]:
    """Turn and mirror centred `points` [N, 2] so that they lie as near to `onto` as they can.

    Source: Schönemann 1966, the orthogonal Procrustes problem.
    """
    left, _, right = np.linalg.svd(np.asarray(points, np.float64).T @ (onto - np.mean(onto, axis=0)))
    return points @ (left @ right)


def _fixed_signs(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """A component's sign is arbitrary: the point farthest out gets a positive one."""
    farthest = points[np.abs(points).argmax(0), range(points.shape[1])]
    return points * np.where(farthest < 0, -1.0, 1.0)
