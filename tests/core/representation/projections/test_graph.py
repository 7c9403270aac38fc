"""The graph that a map is computed from, against umap-learn, scikit-learn and slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from core.representation.geometry import normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.graph import Graph, bisect_rows, changed_fraction, memberships, symmetric_graph
from core.representation.projections.tsne import affinities
from core.representation.projections.umap import fuzzy_graph
from tests.cases import each
from tests.core.representation.projections.clouds import umap_learn

RNG = np.random.default_rng(0)
CLOUD = RNG.normal(size=(40, 5))


def dense(graph: Graph) -> np.ndarray:
    matrix = np.zeros((graph.size, graph.size))
    matrix[graph.rows, graph.columns] = graph.weights
    return matrix


def test_bisection_finds_where_a_falling_score_meets_its_target() -> None:
    factors = np.array([1e-4, 0.3, 1.0, 50.0, 1e6])
    found = bisect_rows(lambda x: np.exp(-factors * x), 0.25, 5)
    assert found == pytest.approx(math.log(4) / factors, rel=1e-6)
    assert bisect_rows(lambda x: np.full(2, 1.0), 0.5, 2) == pytest.approx([2.0**63] * 2)


def test_memberships_add_up_to_the_logarithm_of_the_neighbours() -> None:
    _, distances = nearest_among(CLOUD, CLOUD, 9, itself=True)
    weights = memberships(distances)
    assert (weights[:, 0] == 1).all()
    assert (np.diff(weights, axis=1) <= 0).all()
    assert weights.sum(1) == pytest.approx(np.full(40, math.log2(10)))


@pytest.mark.slow
@each("neighbours", [2, 5, 15, 40])
@each("copies", [1, 3])
def test_the_graph_is_that_of_umap_learn(neighbours: int, copies: int) -> None:
    rows = normalised(np.repeat(CLOUD, copies, axis=0))
    if copies == 1:
        distances, indices = NearestNeighbors(n_neighbors=neighbours - 1, algorithm="brute").fit(rows).kneighbors()
    else:  # the order of copies is arbitrary: use ours
        indices, distances = nearest_among(rows, rows, neighbours - 1, itself=True)
    own = np.arange(len(rows))[:, None]
    indices, distances = np.hstack([own, indices]), np.hstack([0.0 * own, distances])
    peer, _, _ = umap_learn().fuzzy_simplicial_set(
        rows, neighbours, np.random.RandomState(0), "euclidean", knn_indices=indices, knn_dists=distances
    )
    assert dense(fuzzy_graph(rows, neighbours)) == pytest.approx(peer.toarray(), abs=2e-4)


def test_neighbours_beyond_the_examples_are_all_examples() -> None:
    assert dense(fuzzy_graph(CLOUD, 1000)) == pytest.approx(dense(fuzzy_graph(CLOUD, 40)))


@each("perplexity", [3.0, 9.5])
def test_affinities_have_the_perplexity_and_add_up_to_one(perplexity: float) -> None:
    graph = dense(affinities(CLOUD, perplexity))
    assert graph.sum() == pytest.approx(1)
    assert graph == pytest.approx(graph.T)
    z = normalised(CLOUD)
    expected = np.zeros((40, 40))
    for i in range(40):
        near = sorted((math.dist(z[i], z[j]), j) for j in range(40) if j != i)[: int(3 * perplexity)]
        low, high = 0.0, 1e3
        for _ in range(200):
            shares = np.array([math.exp(-d * d * (low + high) / 2) for d, _ in near])
            shares /= shares.sum()
            too_wide = math.exp(-(shares * np.log(shares + 1e-300)).sum()) > perplexity
            low, high = ((low + high) / 2, high) if too_wide else (low, (low + high) / 2)
        for share, (_, j) in zip(shares, near, strict=True):
            expected[i, j] += share / 80
            expected[j, i] += share / 80
    assert graph == pytest.approx(expected, abs=1e-8)


def test_edges_of_a_row_lie_between_its_starts() -> None:
    graph = symmetric_graph(np.array([[1], [0], [1]]), np.array([[0.5], [0.25], [1.0]]), np.add)
    assert dense(graph).tolist() == [[0, 0.75, 0], [0.75, 0, 1], [0, 1, 0]]
    assert graph.starts.tolist() == [0, 1, 3, 4]


def test_change_is_0_for_equal_graphs_and_1_for_disjoint_ones() -> None:
    first = symmetric_graph(np.array([[1], [0], [3], [2]]), np.ones((4, 1)), np.maximum)
    second = symmetric_graph(np.array([[2], [3], [0], [1]]), np.ones((4, 1)), np.maximum)
    half = symmetric_graph(np.array([[1], [0], [3], [2]]), np.full((4, 1), 0.5), np.maximum)
    assert changed_fraction(first, first) == 0
    assert changed_fraction(first, second) == 1
    assert changed_fraction(first, half) == pytest.approx(0.5)
