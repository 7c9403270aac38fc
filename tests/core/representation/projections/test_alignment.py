"""Maps that hold still: what is only turned or mirrored comes back."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.projections import align
from core.representation.projections.alignment import centred, settled
from tests.cases import each

RNG = np.random.default_rng(0)


def turned(angle: float, *, mirrored: bool) -> np.ndarray:
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return matrix @ np.diag([1.0, -1.0]) if mirrored else matrix


@each("mirrored", [False, True])
@each("angle", [0.0, 0.5, 3.0, -2.0])
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


def test_a_turned_copy_in_space_comes_back() -> None:
    points = RNG.normal(size=(20, 3))
    points -= points.mean(0)
    rotation = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    assert settled(points @ rotation + 5, points) == pytest.approx(points, abs=1e-5)


def test_points_are_centred() -> None:
    points = RNG.normal(size=(20, 3))
    assert centred(points + 5) == pytest.approx(points - points.mean(0), abs=1e-6)
    assert centred(points).dtype == np.float32


def test_the_centre_is_that_of_the_map_before() -> None:
    points, onto = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2)) + 3
    assert settled(points, onto).mean(0) == pytest.approx(onto.mean(0))


def test_no_point_goes_farther_than_allowed() -> None:
    onto = RNG.normal(size=(20, 2))
    points = onto + RNG.normal(size=(20, 2)) * 0.5
    free, held = settled(points, onto) - onto, settled(points, onto, 0.2) - onto
    most = 0.2 * np.ptp(onto, axis=0).max()
    assert np.linalg.norm(held, axis=1) == pytest.approx(np.minimum(np.linalg.norm(free, axis=1), most))
    assert 0 < (np.linalg.norm(free, axis=1) > most).sum() < 20
