"""PCA of one frame, aligned to the previous frame."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.projections import pca_map
from core.representation.projections.entry import PreviousMap
from core.representation.projections.pca import place
from tests.cases import each

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(30, 8))


def test_a_map_keeps_the_two_widest_directions() -> None:
    z = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    widest = np.linalg.eigvalsh(np.cov(z.T))[::-1][:2]
    assert pca_map(VECTORS).var(0, ddof=1) == pytest.approx(widest, rel=1e-4)


def test_a_frame_is_turned_onto_the_one_before() -> None:
    turned = pca_map(VECTORS) @ np.array([[0.6, 0.8], [0.8, -0.6]], np.float32)
    assert pca_map(VECTORS, turned) == pytest.approx(turned, abs=1e-6)


def test_a_map_far_from_the_origin_is_followed_in_shape() -> None:
    first = pca_map(VECTORS)
    assert pca_map(VECTORS, first + np.float32(5)) == pytest.approx(first, abs=1e-5)


def test_the_same_vectors_give_the_same_signs() -> None:
    points = pca_map(VECTORS)
    farthest = np.abs(points).argmax(0)
    assert (points[farthest, [0, 1]] > 0).all()
    assert (pca_map(VECTORS.copy()) == points).all()


@each(
    "vectors",
    [np.ones((1, 8)), np.ones((2, 8)), np.ones((5, 1)), np.zeros((5, 8)), np.array([[1.0, 2], [3, 4]]), np.eye(3, 1)],
)
def test_few_rows_or_columns_still_give_a_flat_map(vectors: np.ndarray) -> None:
    first = pca_map(vectors)
    second = pca_map(vectors, first)
    for points in (first, second):
        assert points.shape == (len(vectors), 2)
        assert np.isfinite(points).all()
    assert second == pytest.approx(first, abs=1e-6)


def test_a_third_component_stands_beside_the_first_two() -> None:
    space = pca_map(VECTORS, dims=3)
    assert space.shape == (30, 3)
    assert space[:, :2] == pytest.approx(pca_map(VECTORS))
    assert space[:, 1].var() >= space[:, 2].var() > 0


def test_the_reference_lies_where_it_was_fitted() -> None:
    for dims in (2, 3):
        points = pca_map(VECTORS, dims=dims)
        assert place(VECTORS, PreviousMap(VECTORS, points), {}) == pytest.approx(points, abs=1e-6)


def test_another_frame_is_projected_on_the_references_axes() -> None:
    other = RNG.normal(size=(7, 8))
    z = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    values, axes = np.linalg.eigh(np.cov(z.T))
    unit = other / np.linalg.norm(other, axis=1, keepdims=True)
    expected = (unit - z.mean(0)) @ axes[:, np.argsort(values)[::-1][:2]]
    assert np.abs(place(other, PreviousMap(VECTORS, pca_map(VECTORS)), {})) == pytest.approx(np.abs(expected), abs=1e-6)
