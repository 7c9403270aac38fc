"""UMAP without random sampling.

umap-learn samples edges, and five other points to push for each edge, so its layout trembles even if nothing changed.
Here each step takes the mean of those samples: every edge by its weight, every other point by 5/N. The graph, the curve
and the balance of forces are UMAP's. The same vectors give the same map, and similar vectors give similar maps.

Source: McInnes et al. 2018, arXiv:1802.03426; the mean of the sampled forces: Damrich & Hamprecht 2021,
arXiv:2103.14608.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from core.messages import N_
from core.parameters import Parameter, Value, number, whole
from core.representation.geometry import Array, normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.alignment import Points, centred, settled
from core.representation.projections.copies import drawn_apart, find_copies
from core.representation.projections.descent import descend, meetings, pace, reach
from core.representation.projections.entry import PreviousMap, Projection
from core.representation.projections.graph import Graph, both_ways, changed, memberships
from core.representation.projections.kernels import Coordinates, compiled, pull_by_power, push_by_table
from core.representation.projections.pca import pca_map

PUSHES = 5  # negative samples per edge
NEAR = 1e-3  # keeps the push finite for points that coincide
COLD_STEPS, WARM_STEPS, PLACING_STEPS = 500, 150, 60
RATE, LAST_RATE, MOMENTUM, LONGEST = 0.2, 0.02, 0.9, 0.5
START_WIDTH = 10.0
TABLE_WIDTH, PER_UNIT = 64, 128


def fit(embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None) -> Points:
    """Lay out the rows [N, H], starting from their PCA or the previous map; equal vectors share one position.

    Args:
        settings: neighbours (including the point itself, limited to M for M distinct vectors) and min_dist.
        seed: decides which points interact if there are more than 2,500; otherwise it has no effect.
        before: the frame whose map this one continues. Its steps are the longer, the more of the graph is new; equal
            vectors leave the map unchanged.
    Returns: [N, D], centred, aligned with the previous map.
    """
    neighbours = whole(settings, "neighbours")
    copies = find_copies(embeddings)
    rows = embeddings[copies.first]
    graph = fuzzy_graph(rows, neighbours)
    force = _forces(graph, number(settings, "min_dist"), seed)
    if before is None or not np.ptp(before.points):
        rates = np.linspace(RATE, LAST_RATE, COLD_STEPS)
        return centred(descend(_scaled(pca_map(rows, dims=dims)), force, rates, MOMENTUM, LONGEST)[copies.of])
    length = pace(changed(copies.over_rows(graph), _over_rows(before.embeddings, neighbours)))
    start = copies.mean(before.points)
    rates = length * np.linspace(RATE, LAST_RATE, WARM_STEPS)
    points = descend(drawn_apart(start, rows), force, rates, MOMENTUM, LONGEST)
    return centred(settled(points, start, reach(length))[copies.of])


def place(embeddings: Array, reference: PreviousMap, settings: Mapping[str, Value]) -> Points:
    """Place rows [M, H] on the map of the reference frame, which stays fixed; equal vectors share one position.

    Each row starts at the weighted mean of its nearest neighbours there, with copies counted once, and then follows the
    same forces.
    """
    copies, known = find_copies(embeddings), find_copies(reference.embeddings)
    fitted, places = normalised(reference.embeddings[known.first]), reference.points[known.first]
    k = max(1, min(whole(settings, "neighbours") - 1, len(fitted)))
    neighbours, distances = nearest_among(normalised(embeddings[copies.first]), fitted, k)
    weights = memberships(distances)
    weights /= weights.sum(1, keepdims=True)
    start = (weights[:, :, None] * places[neighbours]).sum(1)  # [distinct, D]
    others = np.zeros((3, len(fitted)), np.float32)
    others[: start.shape[1]] = places.T
    starts = np.arange(0, weights.size + 1, k)
    force = _toward(others, starts, neighbours.ravel(), weights.ravel(), number(settings, "min_dist"))
    placed = descend(start, force, np.linspace(RATE, LAST_RATE, PLACING_STEPS), MOMENTUM, LONGEST)
    return placed[copies.of].astype(np.float32)


def _over_rows(embeddings: Array, neighbours: int) -> Graph:
    copies = find_copies(embeddings)
    return copies.over_rows(fuzzy_graph(embeddings[copies.first], neighbours))


def fuzzy_graph(embeddings: Array, neighbours: int) -> Graph:
    """Build UMAP's graph of the normalised rows [N, H]: a + b − ab of the memberships in both directions."""
    z = normalised(embeddings)
    found, distances = nearest_among(z, z, min(neighbours, len(z)) - 1, itself=True)
    return both_ways(found, memberships(distances), lambda there, back: there + back - there * back)


@cache
def curve(min_dist: float) -> tuple[float, float]:
    """Fit a and b of 1 / (1 + a d^2b) to 1 up to `min_dist` and exp(min_dist − d) beyond, as umap-learn does."""
    from scipy.optimize import curve_fit

    d = np.linspace(0, 3, 300)
    wanted = np.where(d < min_dist, 1.0, np.exp(min_dist - d))
    (a, b), _ = curve_fit(lambda x, a, b: 1 / (1 + a * x ** (2 * b)), d, wanted)
    return float(a), float(b)


def _scaled(points: Points) -> Points:
    """Scale coordinates to at most 10, as umap-learn starts; equal vectors stay at one point."""
    width = np.abs(points).max()
    return points * np.float32(START_WIDTH / width) if width > NEAR * NEAR else np.zeros_like(points)


def _table(a: float, b: float) -> tuple[Coordinates, Coordinates]:
    """Tabulate the push per unit of difference at every 128th of a unit of distance, and its change to the next."""
    square = (np.arange(TABLE_WIDTH * PER_UNIT + 1) / PER_UNIT) ** 2
    push = 2 * b / ((NEAR + square) * (1 + a * square**b))
    return push.astype(np.float32), np.append(np.diff(push), 0).astype(np.float32)


def _forces(graph: Graph, min_dist: float, seed: int) -> Callable[[Coordinates], Coordinates]:
    """Return the mean force on each point, per unit of its edges' weight."""
    a, b = curve(min_dist)
    table, slope = _table(a, b)
    starts, columns, size = graph.starts, graph.columns, graph.size
    degrees = np.bincount(graph.rows, graph.weights, size)
    weights = (graph.weights / degrees[graph.rows]).astype(np.float32)
    push, pull, rng = compiled(push_by_table), compiled(pull_by_power), np.random.default_rng(seed)

    def force(points: Coordinates) -> Coordinates:
        out = np.empty_like(points)
        for group in meetings(size, rng):
            some = np.ascontiguousarray(points[:, group])
            pushed = np.empty_like(some)
            push(some, some, table, slope, np.float32(PER_UNIT), pushed)
            out[:, group] = pushed * np.float32(PUSHES / len(group))
        pull(points, points, starts, columns, weights, np.float32(a), np.float32(b), out)
        return out

    return force


def _toward(
    others: Coordinates, starts: NDArray[np.int64], columns: NDArray[np.int64], weights: Array, min_dist: float
) -> Callable[[Coordinates], Coordinates]:
    """Return the same forces for points that have edges to some of the `others`, which stay fixed."""
    a, b = curve(min_dist)
    table, slope = _table(a, b)
    push, pull = compiled(push_by_table), compiled(pull_by_power)
    single = weights.astype(np.float32)

    def force(points: Coordinates) -> Coordinates:
        out = np.empty_like(points)
        push(points, others, table, slope, np.float32(PER_UNIT), out)
        out *= np.float32(PUSHES / others.shape[1])
        pull(points, others, starts, columns, single, np.float32(a), np.float32(b), out)
        return out

    return force


# Every vector has neighbours at some scale, so nearly equal vectors fill a map just as distant ones do.
CAUTION = N_("UMAP shows neighbourhoods, not distances: a collapsed space can still look spread out.")
PARAMETERS = (
    Parameter(
        "neighbours",
        N_("Neighbours"),
        15,
        N_("How many neighbours shape the map, the example itself among them: few show small groups, many the whole."),
        kind="integer",
        low=2,
        high=200,
        slider=(5, 100),
    ),
    Parameter(
        "min_dist",
        N_("Minimal distance"),
        0.1,
        N_("How close neighbours may lie on the map: 0 packs them tightly."),
        low=0.0,
        high=0.99,
    ),
)

ENTRIES = (
    Projection(
        "umap",
        "UMAP",
        2,
        N_("McInnes et al. 2018, arXiv:1802.03426; mean forces, Damrich & Hamprecht 2021, arXiv:2103.14608"),
        N_(
            "Keeps each example's nearest neighbours near and pushes the others apart; distances between clusters mean "
            "little."
        ),
        fit,
        place,
        caution=CAUTION,
        parameters=PARAMETERS,
    ),
)
