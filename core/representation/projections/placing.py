"""Placement of new vectors on an existing map."""

from __future__ import annotations

import numpy as np

from core.representation.geometry import Array, normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.alignment import Points
from core.representation.projections.graph import Floats, memberships

NEIGHBOURS = 10
# Coordinates are in single precision. Axes along which points spread less than this fraction of the widest would carry
# only rounding errors.
NARROWEST = 1e-4


def place_new(points: Points, embeddings: Array, vectors: Array, *, linear: bool, k: int = NEIGHBOURS) -> Points:
    """Place new vectors on the map of one frame.

    On a linear map (principal components, rotated or not), a vector is projected on the map's axes. The points P and
    the centred, normalised examples Z give the axes as W = Zᵀ P (PᵀP)⁺. This is exact for a frame that was itself
    fitted, since there P = Z W, WᵀW = 1 and W spans principal axes. On other maps, a vector lies at the weighted mean
    of the positions of its k nearest examples. The weights are those with which UMAP starts new points:
    exp(−(d − ρ)/σ), which sum to log2(k + 1) before they are normalised.
    A vector that equals an example lies where the example lies.

    Args:
        points: [N, D].
        embeddings: [N, H] of the same frame.
        vectors: [M, H].
        linear: whether the map is linear in the normalised vectors (`Projection.linear`).
        k: number of neighbours, ≥ 1, at most N; larger values are lowered to N.
    Returns: [M, D].
    """
    rows, new = normalised(embeddings), normalised(vectors)
    return (_by_axes(points, rows, new) if linear else _by_neighbours(points, rows, new, k)).astype(np.float32)


def _by_axes(points: Points, rows: Floats, new: Floats) -> Array:
    centre, middle = rows.mean(0), points.mean(0, dtype=np.float64)
    spread = points - middle
    # PᵀP squares the spreads, and so the limit. The points sum to 0, so Zᵀ P needs no centred examples.
    axes = rows.T @ spread @ np.linalg.pinv(spread.T @ spread, rcond=NARROWEST**2, hermitian=True)
    return (new - centre) @ axes + middle


def _by_neighbours(points: Points, rows: Floats, new: Floats, k: int) -> Array:
    found, distances = nearest_among(new, rows, max(1, min(k, len(rows))))
    copies = distances == 0
    weights = np.where(copies.any(1, keepdims=True), copies, memberships(distances))  # [M, k]
    weights = weights / weights.sum(1, keepdims=True)
    return (weights[:, :, None] * points[found]).sum(1)
