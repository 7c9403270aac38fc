"""Vectors from outside on a map that is there."""

from __future__ import annotations

import numpy as np

from core.representation.geometry import Array, normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.alignment import Points
from core.representation.projections.graph import Floats, memberships

NEIGHBOURS = 10
# Coordinates are single precision: axes along which points spread less than this part of the widest would only carry
# their rounding.
NARROWEST = 1e-4


def place_new(points: Points, embeddings: Array, vectors: Array, *, linear: bool, k: int = NEIGHBOURS) -> Points:
    """Where new vectors lie on the map of one frame.

    On a linear map, the principal components, turned or not, it lies where their axes put it: the points P and the
    centred, normalised examples Z give them back as W = Zᵀ P (PᵀP)⁺, exactly for a frame that was fitted itself, since
    there P = Z W, WᵀW = 1 and W spans principal axes. Otherwise a vector lies at the weighted mean of its k nearest
    examples' places, with the weights of UMAP's own start for new points: exp(−(d − ρ)/σ), adding up to log2(k + 1)
    before they are made shares.
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
    return (_by_axes(points, rows, new) if linear else _by_neighbours(points, rows, new, k)).astype(np.float32)


def _by_axes(points: Points, rows: Floats, new: Floats) -> Array:
    centre, middle = rows.mean(0), points.mean(0, dtype=np.float64)
    spread = points - middle
    # Spreads are squared in PᵀP. The points' sum is 0, so the examples need not be centred for Zᵀ P.
    axes = rows.T @ spread @ np.linalg.pinv(spread.T @ spread, rcond=NARROWEST**2, hermitian=True)
    return (new - centre) @ axes + middle


def _by_neighbours(points: Points, rows: Floats, new: Floats, k: int) -> Array:
    found, distances = nearest_among(new, rows, max(1, min(k, len(rows))))
    copies = distances == 0
    weights = np.where(copies.any(1, keepdims=True), copies, memberships(distances))  # [M, k]
    weights = weights / weights.sum(1, keepdims=True)
    return (weights[:, :, None] * points[found]).sum(1)
