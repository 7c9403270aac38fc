"""Maps that hold still: what is only turned or mirrored comes back."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.projections import align, pca_map

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(30, 8))


def turned(angle: float, *, mirrored: bool) -> np.ndarray:
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return matrix @ np.diag([1.0, -1.0]) if mirrored else matrix


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("angle", [0.0, 0.5, 3.0, -2.0])
class TestAlign:
    def test_a_turned_copy_comes_back(self, angle: float, mirrored: bool) -> None:
        points = RNG.normal(size=(20, 2))
        points -= points.mean(0)
        assert align(points @ turned(angle, mirrored=mirrored), points) == pytest.approx(points, abs=1e-12)

    def test_nothing_is_stretched(self, angle: float, mirrored: bool) -> None:
        points, onto = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2))
        result = align(points @ turned(angle, mirrored=mirrored), onto)
        assert np.linalg.norm(result, axis=1) == pytest.approx(np.linalg.norm(points, axis=1))


def test_no_other_turn_lies_nearer() -> None:
    points, onto = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2))
    points, onto = points - points.mean(0), onto - onto.mean(0)
    best = np.linalg.norm(align(points, onto) - onto)
    for angle in np.linspace(0, 2 * np.pi, 200):
        for mirrored in (False, True):
            assert best <= np.linalg.norm(points @ turned(angle, mirrored=mirrored) - onto) + 1e-12


def test_a_map_has_two_centred_columns_in_single_precision() -> None:
    points = pca_map(VECTORS)
    assert points.shape == (30, 2)
    assert points.dtype == np.float32
    assert points.mean(0) == pytest.approx([0, 0], abs=1e-6)
    assert points[:, 0].var() >= points[:, 1].var()


def test_a_map_keeps_the_two_widest_directions() -> None:
    z = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    widest = np.linalg.eigvalsh(np.cov(z.T))[::-1][:2]
    assert pca_map(VECTORS).var(0, ddof=1) == pytest.approx(widest, rel=1e-4)


def test_identical_frames_do_not_move() -> None:
    first = pca_map(VECTORS)
    assert pca_map(VECTORS, first) == pytest.approx(first, abs=1e-6)


def test_a_rotation_of_the_space_does_not_move_the_map() -> None:
    rotation = np.linalg.qr(RNG.normal(size=(8, 8)))[0]
    first = pca_map(VECTORS)
    assert pca_map(VECTORS @ rotation, first) == pytest.approx(first, abs=1e-5)


def test_a_map_far_from_the_origin_is_followed_in_shape() -> None:
    first = pca_map(VECTORS)
    assert pca_map(VECTORS, first + np.float32(5)) == pytest.approx(first, abs=1e-5)


def test_the_same_vectors_give_the_same_signs() -> None:
    points = pca_map(VECTORS)
    farthest = np.abs(points).argmax(0)
    assert (points[farthest, [0, 1]] > 0).all()
    assert (pca_map(VECTORS.copy()) == points).all()


@pytest.mark.parametrize(
    "vectors",
    [np.ones((1, 8)), np.ones((2, 8)), np.ones((5, 1)), np.zeros((5, 8)), np.array([[1.0, 2], [3, 4]]), np.eye(3, 1)],
    ids=["one row", "two equal rows", "one column", "zeros", "two rows", "one column, three rows"],
)
def test_few_rows_or_columns_still_give_a_flat_map(vectors: np.ndarray) -> None:
    first = pca_map(vectors)
    second = pca_map(vectors, first)
    for points in (first, second):
        assert points.shape == (len(vectors), 2)
        assert np.isfinite(points).all()
    assert second == pytest.approx(first, abs=1e-6)


def test_equal_vectors_fall_on_one_point() -> None:
    assert pca_map(np.full((6, 4), 0.3)) == pytest.approx(np.zeros((6, 2)), abs=1e-6)
