"""Equal vectors, against a slow loop. They are laid out once: copies share one position and do not change the map."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.geometry import normalised
from core.representation.projections import PROJECTIONS, MapSpec, Projection
from core.representation.projections.copies import find_copies
from core.representation.projections.entry import PreviousMap
from core.representation.projections.graph import Graph, symmetric_graph
from core.representation.projections.layout import separate_coincident
from tests.cases import each
from tests.core.representation.projections.clouds import clusters, fitted

RNG = np.random.default_rng(0)
CLOUD = clusters(90)


def slow_originals(rows: np.ndarray) -> list[int]:
    """Return for each row the first earlier original within 1e-6, or the row itself."""
    z, found = normalised(rows), []
    for i in range(len(z)):
        originals = [j for j in range(i) if found[j] == j]
        found.append(next((j for j in originals if np.linalg.norm(z[i] - z[j]) < 1e-6), i))
    return found


@each("noise", [0.0, 1e-7, 1e-6, 1e-5])
def test_copies_are_those_of_a_slow_loop(noise: float) -> None:
    rows = RNG.normal(size=(20, 6))[RNG.integers(20, size=60)] * RNG.uniform(0.1, 9, size=(60, 1))
    rows = rows * (1 + noise * RNG.normal(size=rows.shape))
    rows[[4, 9]] = 0  # copies of each other
    copies = find_copies(rows)
    assert list(copies.first[copies.of]) == slow_originals(rows)
    assert (np.diff(copies.first) > 0).all()


def test_a_vectors_place_is_the_mean_of_its_copies() -> None:
    copies = find_copies(np.array([[1.0, 0], [0, 1], [3, 0], [0, 2], [1, 1]]))
    points = np.arange(10.0).reshape(5, 2)
    assert copies.mean(points).tolist() == [[2, 3], [4, 5], [8, 9]]


def test_a_graph_over_rows_has_its_edges_at_first_rows() -> None:
    copies = find_copies(np.array([[1.0, 0], [2, 0], [0, 1], [1, 1]]))
    graph = copies.over_rows(symmetric_graph(np.array([[1], [2], [0]]), np.array([[0.5], [0.25], [1.0]]), np.add))
    expected = Graph(4, np.array([2, 3, 8, 11, 12, 14]), np.array([0.5, 1.0, 0.5, 0.25, 1.0, 0.25]))
    assert (graph.size, graph.keys.tolist()) == (4, expected.keys.tolist())
    assert graph.weights == pytest.approx(expected.weights)


def test_only_points_on_one_spot_are_drawn_apart() -> None:
    places, rows = RNG.normal(size=(9, 2)), RNG.normal(size=(9, 5))
    places[[2, 5, 7]] = places[2]
    apart = separate_coincident(places, rows)
    alone = [0, 1, 3, 4, 6, 8]
    assert (apart[alone] == places[alone]).all()
    assert len(np.unique(apart, axis=0)) == 9
    assert np.abs(apart - places).max() == pytest.approx(1e-3 * np.ptp(places, axis=0).max())


@each(("entry", "dims"), [(PROJECTIONS["tsne"], 2), (PROJECTIONS["umap"], 3)])
class TestLayouts:
    def test_copies_move_nothing_and_share_a_place(self, entry: Projection, dims: int) -> None:
        many = np.concatenate([CLOUD, np.repeat(CLOUD[:1], 60, axis=0) * 3, CLOUD[5:9] * (1 + 1e-8)])
        with_copies, without = fitted(entry, many, dims), fitted(entry, CLOUD, dims)
        assert (with_copies[90:150] == with_copies[0]).all()
        assert (with_copies[150:] == with_copies[5:9]).all()
        expected = without - without[0]
        assert with_copies[:90] - with_copies[0] == pytest.approx(expected, abs=1e-4 * float(np.ptp(without)))
        assert with_copies.mean(0) == pytest.approx(np.zeros(dims), abs=1e-4)

    def test_a_class_collapses_and_comes_apart_again(self, entry: Projection, dims: int) -> None:
        collapsed = CLOUD.copy()
        collapsed[:40] = CLOUD[0]
        apart = fitted(entry, CLOUD, dims)
        together = fitted(entry, collapsed, dims, PreviousMap(CLOUD, apart))
        again = fitted(entry, CLOUD, dims, PreviousMap(collapsed, together))
        assert (together[:40] == together[0]).all()
        assert len(np.unique(together, axis=0)) == 51
        assert len(np.unique(again, axis=0)) == 90
        assert np.ptp(again[:40], axis=0).max() > 0.1 * np.ptp(apart[:40], axis=0).max()

    @each("distinct", [1, 2, 3, 5])
    def test_fewer_distinct_vectors_than_neighbours(self, entry: Projection, dims: int, distinct: int) -> None:
        few = CLOUD[np.arange(80) % distinct]
        first = fitted(entry, few, dims)
        after = fitted(entry, few, dims, PreviousMap(CLOUD[:80], fitted(entry, CLOUD[:80], dims)))
        other = fitted(entry, CLOUD[:80], dims, PreviousMap(few, first))
        for points in (first, after):
            assert np.isfinite(points).all()
            assert len(np.unique(points, axis=0)) == distinct
            assert (points == points[np.arange(80) % distinct]).all()
        assert np.isfinite(other).all()
        assert len(np.unique(other, axis=0)) == 80


def test_a_reference_of_copies_counts_each_once() -> None:
    entry = PROJECTIONS["umap"]
    points = fitted(entry, CLOUD)
    rows = np.concatenate([np.arange(90), np.zeros(60, int)])
    given = np.concatenate([CLOUD[3:30] * 1.5, CLOUD[3:6]])
    alone = entry.onto(given, PreviousMap(CLOUD, points), MapSpec("umap").settings)
    many = entry.onto(given, PreviousMap(CLOUD[rows], points[rows]), MapSpec("umap").settings)
    assert many == pytest.approx(alone, abs=1e-4)
    assert (alone[27:] == alone[:3]).all()
