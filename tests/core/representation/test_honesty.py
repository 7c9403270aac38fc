"""Trustworthiness against scikit-learn and the definition, overlap against sets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from core.representation import neighbours
from core.representation.honesty import map_honesty
from tests.cases import each


def made(n: int, d: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and a middling map of them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) + 0.5
    return rows, rows[:, :2] * 3 + rng.normal(size=(n, 2)) * 0.2


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_definition(rows: np.ndarray, points: np.ndarray, k: int) -> tuple[list[float], list[float]]:
    """Per point, with loops and Python's sort alone."""
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


@each(("n", "k"), [(3, 1), (30, 5), (40, 19), (200, 10)])
@each("seed", [0, 1])
def test_the_mean_is_what_scikit_learn_gives_on_normalised_rows(n: int, k: int, seed: int) -> None:
    rows, points = made(n, seed=seed)
    found = map_honesty(rows, points, k)
    assert found.trustworthiness == pytest.approx(trustworthiness(unit(rows), points, n_neighbors=k), abs=1e-12)
    assert found.trustworthiness == pytest.approx(trustworthiness(rows, points, n_neighbors=k, metric="cosine"))
    assert found.k == k


@each("columns", [2, 3])
def test_every_point_equals_the_definition(columns: int) -> None:
    rows, _ = made(40)
    points = rows[:, :columns]
    found = map_honesty(rows, points, 6)
    trust, overlap = by_definition(rows, points, 6)
    assert found.per_point_trustworthiness == pytest.approx(trust)
    assert found.per_point_overlap == pytest.approx(overlap)
    assert found.trustworthiness == pytest.approx(np.mean(trust))
    assert found.overlap == pytest.approx(np.mean(overlap))


def test_a_map_that_keeps_every_angle_is_perfect() -> None:
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 60)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    wide = circle @ np.linalg.qr(np.random.default_rng(1).normal(size=(9, 9)))[0][:2]
    found = map_honesty(wide * 7, circle, 8)
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)
    assert (found.per_point_trustworthiness == 1).all()


def test_a_map_that_brings_the_farthest_together_is_the_worst_for_that_point() -> None:
    angles = np.radians([0.0, 10, 21, 33, 130, 170])
    rows = np.stack([np.cos(angles), np.sin(angles)], 1)
    points = np.array([[0.0, 0], [50, 0], [60, 0], [71, 0], [2, 0], [1, 0]])
    found = map_honesty(rows, points, 2)
    assert found.per_point_trustworthiness[0] == pytest.approx(0)
    assert found.per_point_overlap[0] == 0


def test_k_is_lowered_below_half_of_the_points() -> None:
    rows, points = made(20)
    found = map_honesty(rows, points, 100)
    assert found.k == 9
    assert found.trustworthiness == pytest.approx(trustworthiness(unit(rows), points, n_neighbors=9))


@each("n", [0, 1, 2])
def test_fewer_than_three_points_cannot_be_out_of_order(n: int) -> None:
    found = map_honesty(np.eye(2)[:n], np.zeros((n, 2)))
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)
    assert found.per_point_overlap.tolist() == [1.0] * n
    assert found.k == 0


def test_copies_of_texts_are_in_one_order_in_both_spaces() -> None:
    rows, points = made(9)
    copies = np.arange(90) % 9
    found = map_honesty(rows[copies], points[copies], 9)
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)


@each("value", [0.0, 1.0])
def test_a_collapsed_model_on_a_collapsed_map_is_finite(value: float) -> None:
    found = map_honesty(np.full((30, 4), value), np.full((30, 2), value), 5)
    assert (found.trustworthiness, found.overlap) == (1.0, 1.0)


def test_the_order_of_the_points_does_not_matter() -> None:
    rows, points = made(50)
    order = np.random.default_rng(2).permutation(50)
    first, second = map_honesty(rows, points), map_honesty(rows[order], points[order])
    assert second.per_point_trustworthiness == pytest.approx(first.per_point_trustworthiness[order])
    assert second.per_point_overlap == pytest.approx(first.per_point_overlap[order])


def test_neither_size_nor_place_nor_turn_of_the_map_matters() -> None:
    rows, points = made(50)
    turned = points @ np.array([[0.0, -1.0], [1.0, 0.0]]) * 5 + 100
    assert map_honesty(rows, turned).trustworthiness == pytest.approx(map_honesty(rows, points).trustworthiness)


@pytest.mark.parametrize("numbers", [1, 60, 130])
def test_blocks_of_any_size_give_the_same(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, points = made(50)
    whole = map_honesty(rows, points)
    monkeypatch.setattr(neighbours, "BLOCK_NUMBERS", numbers)
    assert (map_honesty(rows, points).per_point_trustworthiness == whole.per_point_trustworthiness).all()


def test_single_precision_as_the_store_has_it_is_close() -> None:
    rows, points = made(150)
    found = map_honesty(rows.astype(np.float32), points.astype(np.float32))
    assert found.trustworthiness == pytest.approx(map_honesty(rows, points).trustworthiness, abs=1e-4)


def test_as_many_points_as_vectors() -> None:
    with pytest.raises(ValueError, match="points = 3 rows: expected 4, as many as embeddings"):
        map_honesty(np.eye(4), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="k = 0: expected at least 1"):
        map_honesty(np.eye(4), np.zeros((4, 2)), 0)
