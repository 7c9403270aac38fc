"""Alignment of maps that were only rotated or reflected."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.projections import align
from core.representation.projections.alignment import align_to_previous, centred

RNG = np.random.default_rng(0)


def test_no_other_rotation_is_nearer() -> None:
    points, onto = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2))
    points, onto = points - points.mean(0), onto - onto.mean(0)
    aligned = align(points, onto)
    assert np.linalg.norm(aligned, axis=1) == pytest.approx(np.linalg.norm(points, axis=1))  # no scaling
    best = np.linalg.norm(aligned - onto)
    for angle in np.linspace(0, 2 * np.pi, 200):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for mirror in (1.0, -1.0):
            assert best <= np.linalg.norm(points @ turn * [1, mirror] - onto) + 1e-12


def test_a_turned_copy_in_space_comes_back() -> None:
    points = RNG.normal(size=(20, 3))
    points -= points.mean(0)
    rotation = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    assert align_to_previous(points @ rotation + 5, points) == pytest.approx(points, abs=1e-5)
    assert centred(points + 5) == pytest.approx(points, abs=1e-6)


def test_the_centre_is_that_of_the_map_before() -> None:
    points, onto = RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2)) + 3
    assert align_to_previous(points, onto).mean(0) == pytest.approx(onto.mean(0))


def test_no_point_goes_farther_than_allowed() -> None:
    onto = RNG.normal(size=(20, 2))
    points = onto + RNG.normal(size=(20, 2)) * 0.5
    free, held = align_to_previous(points, onto) - onto, align_to_previous(points, onto, 0.2) - onto
    most = 0.2 * np.ptp(onto, axis=0).max()
    assert np.linalg.norm(held, axis=1) == pytest.approx(np.minimum(np.linalg.norm(free, axis=1), most))
    assert 0 < (np.linalg.norm(free, axis=1) > most).sum() < 20
