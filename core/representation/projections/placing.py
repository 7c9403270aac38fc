"""Vectors from outside on a map that is there."""

from __future__ import annotations

import numpy as np

from core.representation.geometry import Array, normalised
from core.representation.projections.alignment import Points
from core.representation.projections.graph import Floats, memberships, nearest

NEIGHBOURS = 10
# Coordinates are single precision: directions in which the examples spread less than this part of the widest would only
# carry their rounding.
NARROWEST = 1e-4


def place_new(points: Points, embeddings: Array, vectors: Array, *, linear: bool, k: int = NEIGHBOURS) -> Points:
    """Where new vectors lie on the map of one frame.

    A linear map is found again by least squares, from the normalised examples to their points; it is exact for a frame
    that was fitted itself. Otherwise a vector lies at the weighted mean of its k nearest examples' places, with the
    weights of UMAP's own start for new points: exp(−(d − ρ)/σ), adding up to log2(k + 1) before they are made shares.
    A vector that equals an example lies where the example lies.

    Args:
        points: [N, D].
        embeddings: [N, H] of the same frame.
        vectors: [M, H].
        linear: whether the map is linear in the normalised vectors (`Projection.linear`).
        k: neighbours, ≥ 1; at most N are taken.
    Returns: [M, D].
    """
    rows, new = normalised(embeddings), normalised(vectors)
    return (_by_least_squares(points, rows, new) if linear else _by_neighbours(points, rows, new, k)).astype(np.float32)


def _by_least_squares(points: Points, rows: Floats, new: Floats) -> Array:
    centre, middle = rows.mean(0), points.mean(0, dtype=np.float64)
    return (new - centre) @ (np.linalg.pinv(rows - centre, rcond=NARROWEST) @ (points - middle)) + middle


def _by_neighbours(points: Points, rows: Floats, new: Floats, k: int) -> Array:
    found, distances = nearest(new, rows, max(1, min(k, len(rows))))
    copies = distances == 0
    weights = np.where(copies.any(1, keepdims=True), copies, memberships(distances))  # [M, k]
    weights = weights / weights.sum(1, keepdims=True)
    return (weights[:, :, None] * points[found]).sum(1)
