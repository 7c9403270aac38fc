"""t-SNE with exact forces, where each frame starts from the previous map.

Source: van der Maaten & Hinton 2008; step lengths: Belkina et al. 2019; gains: Jacobs 1988.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from core.messages import N_
from core.parameters import Parameter, Value, number
from core.representation.geometry import Array, normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.alignment import Points
from core.representation.projections.descent import descend, interaction_groups
from core.representation.projections.entry import PreviousMap, Projection
from core.representation.projections.graph import Floats, Graph, bisect_rows, symmetric_graph
from core.representation.projections.kernels import Coordinates, compiled, pull_by_student, push_by_student
from core.representation.projections.layout import lay_out

# From the first paper. The usual 12 ends in worse minima if there are no clear clusters (bench_maps).
EXAGGERATION = 4.0
EARLY_RATE = 4 / EXAGGERATION  # Belkina's gradient includes the factor of 4
GATHERING, GATHERING_STEPS = 2.0, 60
EARLY_STEPS, COLD_STEPS, WARM_STEPS = 250, 500, 300
RATE, EARLY_MOMENTUM, MOMENTUM, LONGEST = 1 / 3, 0.5, 0.8, 5.0
START_WIDTH = 1e-4


def fit(embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None) -> Points:
    """Lay out the rows [N, H] as `lay_out` does; a map that continues another is exaggerated less.

    Args:
        settings: perplexity, limited to 1 … (M − 1)/3 for M distinct vectors.
        seed: selects which points interact if there are more than 2,500; otherwise it has no effect.
    """

    def converged(start: Array, graph: Graph, rates: Floats) -> Array:
        return descend(start, _forces(graph, 1.0, seed), rates, MOMENTUM, LONGEST, adaptive=True)

    def cold(start: Array, graph: Graph) -> Array:
        width = np.std(start[:, 0])
        start = start * np.float32(START_WIDTH / width) if width > START_WIDTH**2 else np.zeros_like(start)
        early = np.full(EARLY_STEPS, EARLY_RATE)
        start = descend(start, _forces(graph, EXAGGERATION, seed), early, EARLY_MOMENTUM, LONGEST)
        return converged(start, graph, np.full(COLD_STEPS, RATE))

    def warm(start: Array, graph: Graph, length: float) -> Array:
        # Exaggerate first, so that fragments of a new cluster can merge; shorter steps exaggerate less.
        gathered = 1 + (GATHERING - 1) * length
        early = np.full(GATHERING_STEPS, length / gathered)
        start = descend(start, _forces(graph, gathered, seed), early, MOMENTUM, LONGEST)
        return converged(start, graph, np.full(WARM_STEPS, length * RATE))

    perplexity = number(settings, "perplexity")
    return lay_out(embeddings, dims, before, lambda rows: affinities(rows, perplexity), cold, warm)


def affinities(embeddings: Array, perplexity: float) -> Graph:
    """Compute P of the normalised rows [N, H] over their 3 · perplexity nearest neighbours; all weights sum to 1."""
    z = normalised(embeddings)
    size = len(z)
    perplexity = max(1.0, min(perplexity, (size - 1) / 3))
    found, distances = nearest_among(z, z, min(size - 1, int(3 * perplexity)), itself=True)
    if not found.size:
        return symmetric_graph(found, distances, np.add)
    squares = distances * distances - (distances * distances)[:, :1]
    wide = bisect_rows(lambda x: _entropy(squares, x), float(np.log(perplexity)), size)
    weights = np.exp(-squares * wide[:, None])
    return symmetric_graph(
        found, weights / weights.sum(1, keepdims=True), lambda there, back: (there + back) / (2 * size)
    )


def _entropy(squares: Floats, x: Floats) -> Floats:
    """Entropy, in nats, of the shares of exp(−x · squares) in each row [N, k], whose smallest square is 0."""
    weights = np.exp(-squares * x[:, None])
    total = weights.sum(1)
    return np.log(total) + x * np.einsum("nk,nk->n", weights, squares) / total


def _forces(graph: Graph, exaggeration: float, seed: int) -> Callable[[Coordinates], Coordinates]:
    """Return the force: N/4 times the negative gradient of KL(P‖Q), P exaggerated. A rate of 1 is Belkina's N."""
    starts, columns, size = graph.starts, graph.columns, graph.size
    weights = (graph.weights * exaggeration * size).astype(np.float32)
    push, pull, rng = compiled(push_by_student), compiled(pull_by_student), np.random.default_rng(seed)

    def force(points: Coordinates) -> Coordinates:
        out, total = np.empty_like(points), 0.0
        for group in interaction_groups(size, rng):
            some = np.ascontiguousarray(points[:, group])
            pushed = np.empty_like(some)
            total += push(some, pushed) * size / len(group)
            out[:, group] = pushed * np.float32(size / len(group))
        out *= np.float32(size / max(total, 1e-12))
        pull(points, starts, columns, weights, out)
        return out

    return force


# Every vector has neighbours at some scale, so nearly equal vectors fill a map just as distant ones do.
CAUTION = N_("t-SNE shows neighbourhoods, not distances: a collapsed space can still look spread out.")
PARAMETERS = (
    Parameter(
        "perplexity",
        N_("Perplexity"),
        30.0,
        N_("Approximate number of neighbours per example; at most a third of the examples."),
        low=2.0,
        high=200.0,
        slider=(5.0, 100.0),
    ),
)

ENTRIES = (
    Projection(
        "tsne",
        "t-SNE",
        1,
        "van der Maaten & Hinton 2008",
        N_("Keeps nearest neighbours close. Cluster sizes and distances between clusters mean little."),
        fit,
        caution=CAUTION,
        parameters=PARAMETERS,
    ),
)
