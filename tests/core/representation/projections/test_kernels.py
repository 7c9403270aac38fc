"""Compiled forces, against slow loops and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.projections import kernels as forces
from core.representation.projections.graph import Graph
from core.representation.projections.tsne import _forces as tsne_forces
from core.representation.projections.tsne import affinities
from core.representation.projections.umap import _forces, curve, fuzzy_graph
from tests.cases import each
from tests.core.representation.projections.clouds import clusters, divergence, umap_learn

CLOUD = clusters(30)
# a and b of umap-learn 0.5.12 by min_dist, for a spread of 1.
CURVES = {
    0.0: (1.932808, 0.790495),
    0.1: (1.576943, 0.895061),
    0.5: (0.583030, 1.334167),
    0.99: (0.119305, 1.916390),
}


def umap_force(points: np.ndarray, graph: Graph, min_dist: float) -> np.ndarray:
    return _forces(graph.starts, graph.columns, graph.shares, min_dist)(points)


def coordinates(dims: int, seed: int = 0, width: float = 3.0) -> np.ndarray:
    points = np.zeros((3, len(CLOUD)), np.float32)
    points[:dims] = np.random.default_rng(seed).normal(size=(dims, len(CLOUD))) * width
    return points


def mean_umap_force(points: np.ndarray, graph: Graph, a: float, b: float) -> np.ndarray:
    """Return the mean of umap-learn's sampled forces, per unit of a point's edges."""
    places, size = points.T.astype(float), graph.size
    matrix = np.zeros((size, size))
    matrix[graph.rows, graph.columns] = graph.weights
    result = np.zeros_like(places)
    for i in range(size):
        for k in range(size):
            gap = places[i] - places[k]
            square = float(gap @ gap)
            if square > 0:
                pull = -2 * a * b * square ** (b - 1) / (1 + a * square**b)
                push = 2 * b / ((0.001 + square) * (1 + a * square**b))
                # An edge is sampled from both ends, and each sample moves both. Five random points repel per sample.
                result[i] += 2 * matrix[i, k] / matrix[i].sum() * pull * gap + 5 / size * push * gap
    return result.T


@each("dims", [2, 3])
@each("min_dist", [0.0, 0.1, 0.8])
def test_umaps_force_is_the_mean_of_its_samples(dims: int, min_dist: float) -> None:
    points, graph = coordinates(dims), fuzzy_graph(CLOUD, 8)
    expected = mean_umap_force(points, graph, *curve(min_dist))
    assert umap_force(points, graph, min_dist) == pytest.approx(expected, abs=2e-3)


def test_the_curve_is_that_of_umap_learn() -> None:
    for min_dist, expected in CURVES.items():
        assert curve(min_dist) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow  # umap-learn compiles for seconds
def test_umap_learn_has_these_curves() -> None:
    for min_dist, (a, b) in CURVES.items():
        assert umap_learn().find_ab_params(1.0, min_dist) == pytest.approx((a, b), rel=1e-5)


@each("dims", [2, 3])
def test_tsnes_force_falls_along_the_divergence(dims: int) -> None:
    points, graph = coordinates(dims), affinities(CLOUD, 5.0)
    force = tsne_forces(graph, 1.0, 0)(points)
    exact = points.astype(float)
    for axis in range(dims):
        for i in range(0, len(CLOUD), 7):
            step = np.zeros_like(exact)
            step[axis, i] = 1e-5
            slope = (divergence((exact + step).T, graph) - divergence((exact - step).T, graph)) / 2e-5
            assert force[axis, i] == pytest.approx(-slope * len(CLOUD) / 4, abs=2e-4)


@each("loop", [forces.push_by_student, forces.push_by_table])
def test_machine_code_does_what_the_loop_says(loop: object) -> None:
    points = coordinates(3)
    extra = () if loop is forces.push_by_student else (np.linspace(1, 0, 65, dtype=np.float32),)
    if extra:
        extra = (points, *extra, np.append(np.diff(extra[0]), 0).astype(np.float32), np.float32(8))
    plain, fast = np.empty_like(points), np.empty_like(points)
    loop(points, *extra, plain)  # type: ignore[operator]
    forces.compiled(loop)(points, *extra, fast)  # type: ignore[arg-type]
    assert fast == pytest.approx(plain, abs=1e-4)


def test_points_on_one_spot_stay_finite() -> None:
    together = np.zeros((3, len(CLOUD)), np.float32)
    assert (umap_force(together, fuzzy_graph(CLOUD, 8), 0.1) == 0).all()
    assert (tsne_forces(affinities(CLOUD, 5.0), 1.0, 0)(together) == 0).all()
