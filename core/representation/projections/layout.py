"""Layout of a neighbour graph as a map, from scratch or from the previous frame's map."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from core.representation.geometry import Array
from core.representation.projections.alignment import Points, align_to_previous, centred
from core.representation.projections.copies import find_copies
from core.representation.projections.entry import PreviousMap
from core.representation.projections.graph import Graph, changed_fraction
from core.representation.projections.pca import pca_map

# If at least this fraction of the graph's weight is new, the map follows the frame at full pace.
WHOLLY_NEW = 0.25
# Distance that separates vectors which coincided on the previous map, in widths of that map.
APART = 1e-3


def lay_out(
    embeddings: Array,
    dims: int,
    before: PreviousMap | None,
    build: Callable[[Array], Graph],
    cold: Callable[[Array, Graph], Array],
    warm: Callable[[Array, Graph, float], Array],
) -> Points:
    """Lay out the rows [N, H] by the graph of their distinct vectors [M, H]; equal vectors share one position.

    Args:
        before: the frame whose map this one continues. Steps are longer if more of the graph is new; equal vectors
            leave the map unchanged.
        build: vectors [M, H] → their graph.
        cold: their PCA [M, D] and graph → points, for a first map or one whose predecessor is a single point.
        warm: their previous positions [M, D], graph and pace → points.
    Returns: [N, D], centred, aligned with the previous map.
    """
    copies = find_copies(embeddings)
    rows = embeddings[copies.first]
    graph = build(rows)
    if before is None or not np.ptp(before.points):
        return centred(cold(pca_map(rows, dims=dims), graph)[copies.of])
    earlier = find_copies(before.embeddings)
    earlier_graph = earlier.over_rows(build(before.embeddings[earlier.first]))
    length = pace(changed_fraction(copies.over_rows(graph), earlier_graph))
    start = copies.mean(before.points)
    points = warm(separate_coincident(start, rows), graph, length)
    return centred(align_to_previous(points, start, reach(length))[copies.of])


def pace(change: float) -> float:
    """Return the step length from one frame's map to the next, 0 to 1, for the fraction of the graph that is new.

    At a constant step length, points would creep on forever, and clusters would drift apart with every step. A variable
    length keeps the map still if nothing changed, and moves it little if little changed.
    """
    return min(1.0, change / WHOLLY_NEW)


def reach(at: float) -> float:
    """Return how far a point may move at a pace of 0 to 1, in widths of the map: 0 at 0, 1/3 at 0.5, ∞ at 1.

    A point at an unstable position may leave for another cluster after a small change. It then moves there in stages,
    over several keyframes.
    """
    return at / (1 - at) / 3 if at < 1 else math.inf


def separate_coincident(places: Array, embeddings: Array) -> Array:
    """Separate the positions [M, D] of distinct vectors [M, H] that coincide.

    Points that coincide and have no neighbours elsewhere feel the same forces, and would stay together forever. They
    are arranged around their common position by their principal components, up to a thousandth of the map's width away.
    """
    _, spot, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    result, width = np.array(places, np.float64), np.ptp(places, axis=0).max() or 1.0
    for shared in np.flatnonzero(counts > 1):
        members = np.flatnonzero(spot == shared)
        around = pca_map(embeddings[members], dims=places.shape[1])
        result[members] += APART * width * around / np.abs(around).max()
    return result
