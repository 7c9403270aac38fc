"""UMAP without random sampling, and umap-learn itself for comparison.

umap-learn samples edges, and five other points to push for each edge, so its layout jitters even if nothing changed.
Here each step takes the mean of those samples: every edge by its weight, every other point by 5/N. The graph, the curve
and the balance of forces are UMAP's. The same vectors give the same map, and similar vectors give similar maps.

Source: McInnes et al. 2018, arXiv:1802.03426; the mean of the sampled forces: Damrich & Hamprecht 2021,
arXiv:2103.14608.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from core.messages import N_
from core.parameters import Parameter, Value, integer_setting, number
from core.representation.geometry import Array, normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.alignment import Points, align_to_previous, centred
from core.representation.projections.copies import find_copies
from core.representation.projections.descent import descend, interaction_groups
from core.representation.projections.entry import PreviousMap, Projection
from core.representation.projections.graph import Floats, Graph, Indices, memberships, symmetric_graph
from core.representation.projections.kernels import Coordinates, compiled, pull_by_power, push_by_table
from core.representation.projections.layout import lay_out
from core.representation.projections.pca import pca_map

PUSHES = 5  # negative samples per edge
NEAR = 1e-3  # keeps the push finite for points that coincide
COLD_STEPS, WARM_STEPS, PLACING_STEPS = 500, 150, 60
RATE, LAST_RATE, MOMENTUM, LONGEST = 0.2, 0.02, 0.9, 0.5
START_WIDTH = 10.0
TABLE_WIDTH, PER_UNIT = 64, 128


def fit(embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None) -> Points:
    """Lay out the rows [N, H] as `lay_out` does.

    Args:
        settings: neighbours (including the point itself, limited to M for M distinct vectors) and min_dist.
        seed: selects which points interact if there are more than 2,500; otherwise it has no effect.
    """
    neighbours, min_dist = integer_setting(settings, "neighbours"), number(settings, "min_dist")

    def moved(start: Array, graph: Graph, rates: Floats) -> Array:
        force = _forces(graph.starts, graph.columns, graph.shares, min_dist, seed)
        return descend(start, force, rates, MOMENTUM, LONGEST)

    def cold(start: Array, graph: Graph) -> Array:
        width = np.abs(start).max()
        start = start * np.float32(START_WIDTH / width) if width > NEAR * NEAR else np.zeros_like(start)
        return moved(start, graph, np.linspace(RATE, LAST_RATE, COLD_STEPS))

    def warm(start: Array, graph: Graph, length: float) -> Array:
        return moved(start, graph, length * np.linspace(RATE, LAST_RATE, WARM_STEPS))

    return lay_out(embeddings, dims, before, lambda rows: fuzzy_graph(rows, neighbours), cold, warm)


def place(embeddings: Array, reference: PreviousMap, settings: Mapping[str, Value]) -> Points:
    """Place rows [M, H] on the map of the reference frame, which stays fixed; equal vectors share one position.

    Each row starts at the weighted mean of its nearest neighbours there, with copies counted once, and then follows the
    same forces.
    """
    copies, known = find_copies(embeddings), find_copies(reference.embeddings)
    fitted, places = normalised(reference.embeddings[known.first]), reference.points[known.first]
    k = max(1, min(integer_setting(settings, "neighbours") - 1, len(fitted)))
    neighbours, distances = nearest_among(normalised(embeddings[copies.first]), fitted, k)
    weights = memberships(distances)
    weights /= weights.sum(1, keepdims=True)
    start = (weights[:, :, None] * places[neighbours]).sum(1)  # [distinct, D]
    others = np.zeros((3, len(fitted)), np.float32)
    others[: start.shape[1]] = places.T
    starts = np.arange(0, weights.size + 1, k)
    force = _forces(starts, neighbours.ravel(), weights.ravel(), number(settings, "min_dist"), others=others)
    placed = descend(start, force, np.linspace(RATE, LAST_RATE, PLACING_STEPS), MOMENTUM, LONGEST)
    return placed[copies.of].astype(np.float32)


def fuzzy_graph(embeddings: Array, neighbours: int) -> Graph:
    """Build UMAP's graph of the normalised rows [N, H]: a + b − ab of the memberships in both directions."""
    z = normalised(embeddings)
    found, distances = nearest_among(z, z, min(neighbours, len(z)) - 1, itself=True)
    return symmetric_graph(found, memberships(distances), lambda there, back: there + back - there * back)


@cache
def curve(min_dist: float) -> tuple[float, float]:
    """Fit a and b of 1 / (1 + a d^2b) to 1 up to `min_dist` and exp(min_dist − d) beyond, as umap-learn does."""
    from scipy.optimize import curve_fit

    d = np.linspace(0, 3, 300)
    wanted = np.where(d < min_dist, 1.0, np.exp(min_dist - d))
    (a, b), _ = curve_fit(lambda x, a, b: 1 / (1 + a * x ** (2 * b)), d, wanted)
    return float(a), float(b)


def _forces(
    starts: Indices,
    columns: Indices,
    weights: Floats,
    min_dist: float,
    seed: int = 0,
    others: Coordinates | None = None,
) -> Callable[[Coordinates], Coordinates]:
    """Return the mean force on each point, per unit of its edges' weight.

    Args:
        starts, columns, weights: edges as in `Graph`, whose weights sum to 1 for each point.
        others: points that the edges lead to and that stay fixed; None for edges among the moving points.
    """
    a, b = curve(min_dist)
    # Push per unit of difference, tabulated at every 128th of a unit of distance, and the change to the next entry.
    square = (np.arange(TABLE_WIDTH * PER_UNIT + 1) / PER_UNIT) ** 2
    exact = 2 * b / ((NEAR + square) * (1 + a * square**b))
    table, slope = exact.astype(np.float32), np.append(np.diff(exact), 0).astype(np.float32)
    push, pull, rng = compiled(push_by_table), compiled(pull_by_power), np.random.default_rng(seed)
    single = weights.astype(np.float32)

    def force(points: Coordinates) -> Coordinates:
        out = np.empty_like(points)
        groups = interaction_groups(points.shape[1], rng) if others is None else [np.arange(points.shape[1])]
        for group in groups:
            some = np.ascontiguousarray(points[:, group])
            fixed, pushed = some if others is None else others, np.empty_like(some)
            push(some, fixed, table, slope, np.float32(PER_UNIT), pushed)
            out[:, group] = pushed * np.float32(PUSHES / fixed.shape[1])
        pull(points, points if others is None else others, starts, columns, single, np.float32(a), np.float32(b), out)
        return out

    return force


def fit_by_library(
    embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None
) -> Points:
    """Lay out the normalised rows [N, H] with umap-learn, from its spectral start or from the previous map.

    Args:
        settings: neighbours (including the point itself, limited to N − 1) and min_dist.
    Returns: [N, D], centred, aligned with the previous map. Fewer than D + 3 distinct vectors are too few for the
        library and are laid out by PCA.
    """
    if len(find_copies(embeddings).first) < dims + 3:
        return pca_map(embeddings, dims=dims)
    rows = normalised(embeddings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about imports, threads and disconnected graphs
        from umap import UMAP

        model = UMAP(
            n_components=dims,
            n_neighbors=max(2, min(integer_setting(settings, "neighbours"), len(rows) - 1)),
            min_dist=number(settings, "min_dist"),
            init="spectral" if before is None else np.array(before.points, np.float32),
            random_state=seed,
            n_jobs=1,
        )
        points = model.fit_transform(rows.astype(np.float32))
    return centred(points if before is None else align_to_previous(points, before.points))


# Every vector has neighbours at some scale, so nearly equal vectors fill a map just as distant ones do.
CAUTION = N_("UMAP shows neighbourhoods, not distances: a collapsed space can still look spread out.")
PARAMETERS = (
    Parameter(
        "neighbours",
        N_("Neighbours"),
        15,
        N_(
            "Number of neighbours that shape the map, including the example itself. Low values show small groups, "
            "high values the global structure."
        ),
        kind="integer",
        low=2,
        high=200,
        slider=(5, 100),
    ),
    Parameter(
        "min_dist",
        N_("Minimal distance"),
        0.1,
        N_("Minimum distance between neighbours on the map. At 0 they are packed tightly."),
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
        N_("Keeps nearest neighbours close and pushes others apart. Distances between clusters mean little."),
        fit,
        place,
        caution=CAUTION,
        parameters=PARAMETERS,
    ),
    Projection(
        "umap-learn",
        "UMAP (umap-learn)",
        4,
        "umap-learn; McInnes et al. 2018, arXiv:1802.03426",
        N_("Layout by umap-learn, started from the previous frame's map, for comparison with the app's stable layout."),
        fit_by_library,
        caution=CAUTION,
        parameters=PARAMETERS,
        library="umap-learn",
        same_as="umap",
    ),
)
