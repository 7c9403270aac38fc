"""Vectors from outside on a map that is there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.representation.projections import pca_map, place_new
from core.representation.projections.entry import PreviousMap
from core.representation.projections.pca import place
from tests.cases import each
from tests.core.representation.projections.clouds import ODD

RNG = np.random.default_rng(0)
VECTORS, NEW = RNG.normal(size=(40, 12)), RNG.normal(size=(9, 12))
POINTS = RNG.normal(size=(40, 2)).astype(np.float32)


@each("dims", [2, 3])
@each("width", [12, 60])
def test_on_a_pca_map_least_squares_are_the_axes(dims: int, width: int) -> None:
    vectors, new = RNG.normal(size=(40, width)), RNG.normal(size=(9, width))
    points = pca_map(vectors, dims=dims)
    assert place_new(points, vectors, new, linear=True) == pytest.approx(
        place(new, PreviousMap(vectors, points), {}), abs=1e-5
    )


def test_a_turned_pca_map_is_found_again() -> None:
    before = pca_map(RNG.normal(size=(40, 12)))
    points = pca_map(VECTORS, before)
    assert place_new(points, VECTORS, VECTORS[:5] * 3, linear=True) == pytest.approx(points[:5], abs=1e-5)


def test_an_example_lies_where_it_lies() -> None:
    assert place_new(POINTS, VECTORS, VECTORS[[3, 17]] * 2, linear=False) == pytest.approx(POINTS[[3, 17]])


def test_a_vector_lies_at_the_weighted_mean_of_its_neighbours() -> None:
    unit, new = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (VECTORS, NEW))
    for row, got in zip(new, place_new(POINTS, VECTORS, NEW, linear=False, k=6), strict=True):
        near = sorted((math.dist(row, other), j) for j, other in enumerate(unit))[:6]
        low, high = 0.0, 100.0
        for _ in range(100):
            weights = [math.exp(-(d - near[0][0]) / ((low + high) / 2)) for d, _ in near]
            low, high = ((low + high) / 2, high) if sum(weights) < math.log2(7) else (low, (low + high) / 2)
        expected = sum(w * POINTS[j].astype(float) for w, (_, j) in zip(weights, near, strict=True)) / sum(weights)
        assert got == pytest.approx(expected, abs=1e-5)


@each("linear", [True, False])
@each("name", ODD)
def test_odd_vectors_are_placed(name: str, linear: bool) -> None:
    points = pca_map(ODD[name], dims=3)
    new = np.concatenate([ODD[name] * 2, np.zeros((1, ODD[name].shape[1]))])
    placed = place_new(points, ODD[name], new, linear=linear)
    assert placed.shape == (len(new), 3)
    assert placed.dtype == np.float32
    assert np.isfinite(placed).all()
