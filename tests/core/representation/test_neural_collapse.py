"""Measures of neural collapse against their definitions as slow loops, and at known geometries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from core.representation.neural_collapse import neural_collapse
from tests.cases import each


def simplex(classes: int) -> np.ndarray:
    """Return the corners [K, K] of a simplex around 0, each of length 1."""
    return (np.eye(classes) - 1 / classes) * math.sqrt(classes / (classes - 1))


def slow(rows: np.ndarray, labels: list[int], weights: np.ndarray, predicted: list[int]) -> dict[str, float]:
    classes = sorted(set(labels))
    means = [np.mean([row for row, of in zip(rows, labels, strict=True) if of == c], axis=0) for c in classes]
    middle = sum(means) / len(means)
    within = np.zeros((rows.shape[1], rows.shape[1]))
    for row, label in zip(rows, labels, strict=True):
        gap = row - means[classes.index(label)]
        within += np.outer(gap, gap) / len(rows)
    between = sum(np.outer(mean - middle, mean - middle) for mean in means) / len(means)
    lengths = [math.dist(mean, middle) for mean in means]
    average = sum(lengths) / len(lengths)
    angles = [
        abs(float((a - middle) @ (b - middle)) / (math.dist(a, middle) * math.dist(b, middle)) + 1 / (len(means) - 1))
        for a, b in itertools.combinations(means, 2)
    ]
    size = math.sqrt(sum(length**2 for length in lengths))
    scale = math.sqrt(sum(float(w) ** 2 for w in weights.ravel()))
    apart = 0
    for row, said in zip(rows, predicted, strict=True):
        nearest = min(classes, key=lambda c: math.dist(row, means[classes.index(c)]))
        apart += nearest != said
    return {
        "nc1": float(np.trace(within @ np.linalg.pinv(between, rcond=1e-10))) / len(means),
        "nc2_norms": math.sqrt(sum((x - average) ** 2 for x in lengths) / (len(lengths) - 1)) / average,
        "nc2_angles": sum(angles) / len(angles),
        "nc3": sum(math.dist(w / scale, (m - middle) / size) ** 2 for w, m in zip(weights, means, strict=True)),
        "nc4": apart / len(rows),
    }


def test_it_is_the_definition() -> None:
    rng = np.random.default_rng(3)
    labels = [0] * 7 + [1] * 3 + [2] * 5 + [3] * 2
    rows = rng.normal(size=(17, 6)) + rng.normal(size=(4, 6))[labels] + 5
    weights, predicted = rng.normal(size=(4, 6)), rng.integers(0, 4, 17)
    found = neural_collapse(rows, labels, weights, predicted)
    assert found == pytest.approx(slow(rows, labels, weights, predicted.tolist()))


def test_collapsed_classes_give_0() -> None:
    corners, labels = simplex(4), [0, 1, 2, 3] * 3
    found = neural_collapse(corners[labels] * 2 + 1, labels, corners * 7, np.array(labels))
    assert found == pytest.approx(dict.fromkeys(("nc1", "nc2_norms", "nc2_angles", "nc3", "nc4"), 0.0), abs=1e-12)


@each(
    ("classes", "weights", "expected"),
    [
        (2, np.eye(3)[:2], {"nc1", "nc3", "nc4"}),
        (3, None, {"nc1", "nc2_norms", "nc2_angles"}),
        (3, np.eye(5)[:, :3], {"nc1", "nc2_norms", "nc2_angles", "nc4"}),
    ],
)
def test_measures_that_two_classes_no_classifier_or_further_classes_leave_undefined_are_left_out(
    classes: int, weights: np.ndarray | None, expected: set[str]
) -> None:
    labels = np.arange(12) % classes
    rows, predicted = np.random.default_rng(0).normal(size=(12, 3)), None if weights is None else labels
    found = neural_collapse(rows, labels.tolist(), weights, predicted)
    assert found.keys() == expected


@each("labels", [[0] * 6, [0, 0, 0, 1, 1, 2]])
def test_a_single_class_or_row_has_none(labels: list[int]) -> None:
    assert neural_collapse(np.random.default_rng(0).normal(size=(6, 3)), labels, None) == {}


def test_equal_class_means_have_none() -> None:
    assert neural_collapse(np.tile(np.array([[1e3, 2.0], [1e3, 2.0]], np.float32), (3, 1)), [0, 1] * 3, None) == {}
