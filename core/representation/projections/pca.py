"""PCA of one frame, aligned with the previous frame."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from core.messages import N_
from core.parameters import Value
from core.representation.geometry import Array, normalised, one_blas_thread
from core.representation.projections.alignment import Points, align
from core.representation.projections.entry import PreviousMap, Projection


def pca_map(embeddings: Array, previous: Points | None = None, dims: int = 2) -> Points:
    """Project the normalised rows on their first principal components.

    Args:
        embeddings: [N, d].
        previous: [N, D] map of the same points one frame earlier. The new map is rotated and reflected onto it
            (orthogonal Procrustes, no scaling), so that points move only because the model changed.
        dims: D, the number of components; missing components are 0.
    Returns: [N, D], centred.
    """
    z = normalised(embeddings)
    z = z - z.mean(0)
    with one_blas_thread():
        _, _, axes = np.linalg.svd(z, full_matrices=False)
    points = _filled(z @ axes[:dims].T, dims)
    points = points * _signs(points) if previous is None else align(points, previous)
    return points.astype(np.float32)


def fit(embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None) -> Points:
    """Compute `pca_map`, aligned with the previous map. Settings and seed have no effect."""
    return pca_map(embeddings, None if before is None else before.points, dims)


def place(embeddings: Array, reference: PreviousMap, settings: Mapping[str, Value]) -> Points:
    """Project rows [M, d] with the axes and the centre of the frame that the reference map was fitted on."""
    fitted = normalised(reference.embeddings)
    centre, dims = fitted.mean(0), reference.points.shape[1]
    _, _, axes = np.linalg.svd(fitted - centre, full_matrices=False)
    signs = _signs(_filled((fitted - centre) @ axes[:dims].T, dims))
    return (_filled((normalised(embeddings) - centre) @ axes[:dims].T, dims) * signs).astype(np.float32)


def _filled(points: NDArray[np.float64], dims: int) -> NDArray[np.float64]:
    """Pad points with zero columns up to `dims`."""
    return np.pad(points, ((0, 0), (0, dims - points.shape[1])))


def _signs(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fix the arbitrary sign of each component, so that the farthest point has a positive coordinate."""
    farthest = points[np.abs(points).argmax(0), range(points.shape[1])]
    return np.where(farthest < 0, -1.0, 1.0)


ENTRIES = (
    Projection(
        "pca",
        "PCA",
        0,
        "Pearson 1901; Hotelling 1933",
        N_(
            "Directions of the largest spread of the normalised vectors. A linear projection: distances can shrink but "
            "never grow."
        ),
        fit,
        place,
        linear=True,
        quick=True,
    ),
)
