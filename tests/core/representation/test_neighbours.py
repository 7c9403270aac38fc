"""Neighbours, against a slow loop and scikit-learn, with ties, copies and single rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from core.representation import neighbours
from core.representation.neighbours import (
    Metric,
    NeighbourIndex,
    all_neighbours,
    kept_neighbours,
    map_honesty,
    nearest_among,
)
from tests.cases import each

METRICS: list[Metric] = ["cosine", "euclidean"]
RNG = np.random.default_rng(0)


def vectors(n: int = 50) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 7)) * rng.uniform(0.3, 3, size=(n, 1)) + 0.7


def distance(a: np.ndarray, b: np.ndarray, metric: str) -> float:
    if metric == "euclidean":
        return math.dist(a, b)
    lengths = math.hypot(*a) * math.hypot(*b)
    return 1 - (sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0)


def slow(rows: np.ndarray, query: np.ndarray, metric: str, own: int | None = None) -> list[tuple[float, int]]:
    """Return (distance, number) from near to far. Distances that agree to 10 digits are ties."""
    others = [j for j in range(len(rows)) if j != own]
    return sorted((round(distance(rows[j], query, metric), 10), j) for j in others)


def nearest(rows: np.ndarray, of: object, k: int, metric: Metric = "cosine") -> neighbours.Neighbours:
    return NeighbourIndex(rows, metric).nearest(of, k)  # type: ignore[arg-type]


@each("metric", METRICS)
class TestOneQuery:
    def test_a_vector_from_outside_equals_a_loop_and_leaves_nobody_out(self, metric: Metric) -> None:
        rows, query = vectors(), RNG.normal(size=7) * 40
        expected = slow(rows, query, metric)
        found = nearest(rows, query, 1000, metric)
        assert found.indices.tolist() == [j for _, j in expected]
        far = 1 - found.values if metric == "cosine" else found.values
        assert far == pytest.approx([value for value, _ in expected], abs=1e-9)
        assert nearest(rows, rows[5], 1, metric).indices.tolist() == [5]

    def test_single_precision_rows_are_put_in_exact_order(self, metric: Metric) -> None:
        # The rows are far from the origin and close together, so a scan in float32 alone could not order them.
        rows = (RNG.normal(size=(200, 64)) * 1e-4 + 1).astype(np.float32)
        exact = rows.astype(np.float64)
        unit = exact / np.linalg.norm(exact, axis=1, keepdims=True) if metric == "cosine" else exact
        far = ((unit - unit[99]) ** 2).sum(1)
        far[99] = np.inf
        found = nearest(rows, 99, 20, metric)
        assert far[found.indices] == pytest.approx(np.sort(far)[:20], rel=1e-2)
        if metric == "euclidean":
            assert found.indices.tolist() == np.argsort(far)[:20].tolist()

    def test_a_vector_from_far_outside_is_no_exception(self, metric: Metric) -> None:
        rows, query = vectors(), RNG.normal(size=7) * 1e7
        far = [distance(row, query, metric) for row in rows]
        assert nearest(rows, query, 3, metric).indices.tolist() == np.argsort(far)[:3].tolist()

    def test_copies_come_first_and_in_the_order_of_their_numbers(self, metric: Metric) -> None:
        rows = RNG.normal(size=(301, 97)).astype(np.float32)
        copies = [3, 50, 51, 128, 200, 300]
        rows[copies] = rows[50]
        found = nearest(rows, 128, 5, metric)
        assert found.indices.tolist() == [3, 50, 51, 200, 300]
        assert found.values == pytest.approx(np.full(5, 1.0 if metric == "cosine" else 0.0))
        assert nearest(rows, rows[50], 6, metric).indices.tolist() == copies

    @each("value", [0.0, 0.3])
    def test_equal_rows_are_taken_from_the_first(self, metric: Metric, value: float) -> None:
        assert nearest(np.full((9, 5), value), 2, 4, metric).indices.tolist() == [0, 1, 3, 4]

    def test_one_row_has_no_neighbours(self, metric: Metric) -> None:
        assert [values.tolist() for values in nearest(np.ones((1, 3)), 0, 3, metric)] == [[], []]


def test_a_zero_row_is_at_right_angles_to_all() -> None:
    rows = np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [10.0, 10.0], [0.0, 0.0]])
    found = nearest(rows, 0, 4)
    assert found.indices.tolist() == [3, 1, 4, 2]
    assert found.values == pytest.approx([0.5**0.5, 0, 0, -1])


@pytest.mark.parametrize("metric", METRICS)
class TestAllRows:
    @pytest.mark.parametrize("numbers", [1, 40, 2**20])
    def test_every_row_is_as_its_own_query_and_the_loop_say_in_blocks_of_any_size(
        self, metric: Metric, numbers: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(neighbours, "BLOCK_NUMBERS", numbers)
        rows = vectors(30)
        index = NeighbourIndex(rows, metric)
        for k in (1, 5, 29):
            found = all_neighbours(rows, k, metric)
            for own in range(30):
                expected = [j for _, j in slow(rows, rows[own], metric, own)[:k]]
                assert found[own].tolist() == expected == index.nearest(own, k).indices.tolist()

    def test_vectors_far_from_the_origin_are_told_apart(self, metric: Metric) -> None:
        rows = 1000 + RNG.normal(size=(60, 7)) * (1.0 if metric == "cosine" else 0.01)
        far = [[math.inf if i == j else distance(rows[i], rows[j], metric) for j in range(60)] for i in range(60)]
        found = np.take_along_axis(np.array(far), all_neighbours(rows, 5, metric), axis=1)
        assert found == pytest.approx(np.sort(far, axis=1)[:, :5], abs=1e-10, rel=1e-6)

    def test_copies_fall_in_the_order_of_their_numbers(self, metric: Metric) -> None:
        rows = RNG.normal(size=(203, 61))[np.arange(203) % 7]
        found = all_neighbours(rows, 5, metric)
        for own in range(203):
            copies = [j for j in range(own % 7, 203, 7) if j != own]
            assert found[own].tolist() == copies[:5]

    def test_k_is_clipped_and_nobody_is_their_own_neighbour(self, metric: Metric) -> None:
        rows = vectors(6)
        found = all_neighbours(rows, 50, metric)
        assert [sorted([own, *row]) for own, row in enumerate(found.tolist())] == [[0, 1, 2, 3, 4, 5]] * 6
        assert all_neighbours(rows[:1], 3, metric).shape == (1, 0)
        assert all_neighbours(rows[:0], 3, metric).shape == (0, 0)


def test_kept_neighbours_equal_sets_in_any_order() -> None:
    before, after = np.array([[RNG.permutation(40)[:9] for _ in range(25)] for _ in range(2)])
    expected = [len({*a} & {*b}) / 9 for a, b in zip(before.tolist(), after.tolist(), strict=True)]
    assert kept_neighbours(before, after) == pytest.approx(expected)
    assert kept_neighbours(np.empty((3, 0), int), np.empty((3, 0), int)).tolist() == [1, 1, 1]


CLOUD = RNG.normal(size=(40, 5))


@each("count", [7, 1500])
def test_nearest_among_are_those_of_a_slow_loop_in_blocks(count: int) -> None:
    rows = RNG.normal(size=(count, 5))
    found, distances = nearest_among(rows, CLOUD, 6)
    for i in {0, 6, *range(0, count, 511), count - 1}:
        expected = sorted((math.dist(rows[i], other), j) for j, other in enumerate(CLOUD))[:6]
        assert list(found[i]) == [j for _, j in expected]
        assert distances[i] == pytest.approx([d for d, _ in expected])


def test_a_row_is_left_out_of_its_own_neighbours() -> None:
    copies = np.repeat(RNG.normal(size=(300, 5)), 4, axis=0)  # more than one block
    found, distances = nearest_among(copies, copies, 5, itself=True)
    for i in range(len(copies)):
        assert i not in found[i]
        assert set(found[i][:3]) == set(range(i // 4 * 4, i // 4 * 4 + 4)) - {i}
    assert (distances[:, :3] == 0).all()
    assert (distances[:, 3:] > 0).all()


def mapped(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors and a mediocre map of them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 12)) + 0.5
    return rows, rows[:, :2] * 3 + rng.normal(size=(n, 2)) * 0.2


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_definition(rows: np.ndarray, points: np.ndarray, k: int) -> tuple[list[float], list[float]]:
    """Compute trustworthiness and overlap per point, with loops and Python's sort only."""
    n, z = len(rows), unit(rows)
    trust, overlap = [], []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        original = sorted(others, key=lambda j: (-round(float(z[i] @ z[j]), 9), j))
        flat = sorted(others, key=lambda j: (round(float(((points[i] - points[j]) ** 2).sum()), 9), j))[:k]
        intruders = sum(original.index(j) + 1 - k for j in flat if j not in original[:k])
        trust.append(1 - 2 / (k * (2 * n - 3 * k - 1)) * intruders)
        overlap.append(len({*flat} & {*original[:k]}) / k)
    return trust, overlap


@each(("n", "k", "used"), [(3, 1, 1), (40, 19, 19), (200, 10, 10), (20, 100, 9)])
def test_the_mean_is_what_scikit_learn_gives_with_k_below_half_of_the_points(n: int, k: int, used: int) -> None:
    rows, points = mapped(n)
    found = map_honesty(rows, points, k)
    assert found.trustworthiness == pytest.approx(trustworthiness(unit(rows), points, n_neighbors=used), abs=1e-12)
    assert found.k == used


@pytest.mark.parametrize("numbers", [1, 60, 2**20])
def test_every_point_equals_the_definition_in_blocks_of_any_size(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "BLOCK_NUMBERS", numbers)
    rows, _ = mapped(40)
    points = rows[:, :3]
    found = map_honesty(rows, points, 6)
    trust, overlap = by_definition(rows, points, 6)
    assert found.per_point_trustworthiness == pytest.approx(trust)
    assert found.per_point_overlap == pytest.approx(overlap)
    assert found.trustworthiness == pytest.approx(np.mean(trust))
    assert found.overlap == pytest.approx(np.mean(overlap))


def test_a_map_that_brings_the_farthest_together_is_the_worst_for_that_point() -> None:
    angles = np.radians([0.0, 10, 21, 33, 130, 170])
    rows = np.stack([np.cos(angles), np.sin(angles)], 1)
    points = np.array([[0.0, 0], [50, 0], [60, 0], [71, 0], [2, 0], [1, 0]])
    found = map_honesty(rows, points, 2)
    assert found.per_point_trustworthiness[0] == pytest.approx(0)
    assert found.per_point_overlap[0] == 0


@each("n", [0, 1, 2])
def test_fewer_than_three_points_cannot_be_out_of_order(n: int) -> None:
    found = map_honesty(np.eye(2)[:n], np.zeros((n, 2)))
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)
    assert found.per_point_overlap.tolist() == [1.0] * n
    assert found.k == 0


def test_copies_of_texts_are_in_one_order_in_both_spaces() -> None:
    rows, points = mapped(9)
    copies = np.arange(90) % 9
    found = map_honesty(rows[copies], points[copies], 9)
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)


@each("value", [0.0, 1.0])
def test_a_collapsed_model_on_a_collapsed_map_is_finite(value: float) -> None:
    found = map_honesty(np.full((30, 4), value), np.full((30, 2), value), 5)
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)
