"""Movement, centroids and margins, against loops and vectors at known angles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from core.representation.movement import class_centroids, cosine_distances, margins
from tests.cases import each

RNG = np.random.default_rng(0)


def at(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], 1)


class TestMoved:
    def test_it_is_the_cosine_distance_of_each_row(self) -> None:
        assert cosine_distances(at(0, 0, 0, 0), at(0, 60, 90, 180)) == pytest.approx([0, 0.5, 1, 2], abs=1e-15)

    def test_a_tiny_turn_is_not_lost_in_rounding(self) -> None:
        assert cosine_distances(at(0), at(1e-6)) == pytest.approx([math.radians(1e-6) ** 2 / 2], rel=1e-6)

    def test_what_stays_or_only_gets_longer_has_not_moved(self) -> None:
        rows = RNG.normal(size=(5, 4)).astype(np.float32)
        assert (cosine_distances(rows, rows) == 0).all()
        assert cosine_distances(rows, rows * 3) == pytest.approx(np.zeros(5), abs=1e-12)

    def test_zero_rows_give_numbers(self) -> None:
        assert cosine_distances(np.zeros((2, 2)), np.array([[0.0, 0.0], [3.0, 0.0]])).tolist() == [0, 0.5]


class TestCentroids:
    def test_they_are_means_of_normalised_rows(self) -> None:
        rows, labels = RNG.normal(size=(12, 3)) * 5, np.arange(12) % 3
        found = class_centroids(rows, labels, 3)
        for c in range(3):
            expected = np.mean([rows[i] / math.hypot(*rows[i]) for i in range(12) if labels[i] == c], axis=0)
            assert found[c] == pytest.approx(expected)

    def test_those_of_absent_classes_are_zeros(self) -> None:
        found = class_centroids(at(0, 90, 45), [2, 2, 0], 4)
        assert found == pytest.approx(np.array([at(45)[0], [0, 0], [0.5, 0.5], [0, 0]]))


def slow_margins(rows: np.ndarray, labels: np.ndarray) -> list[float]:
    z = [row / math.hypot(*row) for row in rows]
    found = []
    for i in range(len(rows)):
        own = [z[j] for j in range(len(rows)) if labels[j] == labels[i] and j != i]
        others = [
            1 - cosine(z[i], np.mean([z[j] for j in range(len(rows)) if labels[j] == other], axis=0))
            for other in {*labels.tolist()} - {labels[i]}
        ]
        found.append(1 - cosine(z[i], np.mean(own, axis=0)) - max(others))
    return found


class TestMargins:
    @each("classes", [2, 4])
    def test_they_equal_a_loop_that_leaves_the_example_out(self, classes: int) -> None:
        rows, labels = RNG.normal(size=(24, 5)) + 0.5, np.arange(24) % classes
        assert margins(rows, labels) == pytest.approx(slow_margins(rows, labels))

    def test_an_example_does_not_count_in_its_own_margin(self) -> None:
        found = margins(at(0, 90, 180), [0, 1, 1])
        assert np.isnan(found).tolist() == [True, False, False]

    def test_without_another_class_there_is_none(self) -> None:
        assert np.isnan(margins(np.eye(3), [1, 1, 1])).all()
        assert margins(np.empty((0, 3)), []).tolist() == []

    def test_members_that_cancel_each_other_point_nowhere(self) -> None:
        rows = np.array([[0.3, 0.5, 0.1], [0.7, -0.2, 0.4], [-0.7, 0.2, -0.4], [0.1, 0.1, 0.9], [0.2, 0.1, 0.9]])
        found = margins(rows, [0, 0, 0, 1, 1])
        to_other = 1 - cosine(rows[0], np.mean([row / np.linalg.norm(row) for row in rows[3:]], axis=0))
        assert found[0] == pytest.approx(0 - to_other)

    def test_equal_vectors_have_margin_zero(self) -> None:
        assert margins(np.full((6, 3), 0.3), [0, 1] * 3) == pytest.approx(np.zeros(6), abs=1e-12)
