"""Movement of points by forces, and the choice of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from core.representation.projections.descent import MOST_AT_ONCE, descend, interaction_groups
from core.representation.projections.layout import pace, reach
from tests.cases import each


@each("dims", [2, 3])
def test_points_end_where_the_force_is_nothing(dims: int) -> None:
    goal = np.random.default_rng(0).normal(size=(dims, 9)).astype(np.float32)
    goal = np.pad(goal, ((0, 3 - dims), (0, 0)))
    end = descend(np.zeros((9, dims)), lambda points: goal - points, np.full(200, 0.2), 0.5, 1.0)
    assert end.shape == (9, dims)
    assert end == pytest.approx(goal[:dims].T, abs=1e-4)


def test_no_step_is_longer_than_allowed() -> None:
    end = descend(np.zeros((1, 3)), lambda points: points * 0 + np.float32(100), np.full(7, 1.0), 0.9, 0.25)
    assert np.linalg.norm(end) == pytest.approx(7 * 0.25, rel=1e-5)


def test_gains_are_those_of_a_slow_loop() -> None:
    goal = np.pad(np.random.default_rng(1).normal(size=(2, 5)), ((0, 1), (0, 0))).astype(np.float32)
    ends = descend(np.zeros((5, 2)), lambda points: goal - points, np.full(30, 0.1), 0.8, 100.0, adaptive=True)
    for axis in range(2):
        for point in range(5):
            place = velocity = 0.0
            gain = 1.0
            for _ in range(30):
                force = goal[axis, point] - place
                gain = gain + 0.2 if velocity * force > 0 else max(gain * 0.8, 0.01)
                velocity = 0.8 * velocity + 0.1 * gain * force
                place += velocity
            assert ends[point, axis] == pytest.approx(place, abs=1e-3)


def test_the_pace_grows_with_the_change_up_to_one() -> None:
    assert pace(0) == 0
    assert 0 < pace(0.02) < pace(0.1) < pace(0.6) == pace(1) == 1


def test_a_point_may_go_farther_the_higher_the_pace() -> None:
    assert [reach(at) for at in (0.0, 0.1, 0.5)] == pytest.approx([0, 1 / 27, 1 / 3])
    assert reach(1.0) == np.inf


def test_few_points_all_meet_and_many_meet_in_groups() -> None:
    rng = np.random.default_rng(0)
    assert [list(group) for group in interaction_groups(5, rng)] == [[0, 1, 2, 3, 4]]
    first, second = ([*interaction_groups(3 * MOST_AT_ONCE, rng)] for _ in range(2))
    for groups in (first, second):
        assert {len(group) for group in groups} == {MOST_AT_ONCE}
        assert sorted(np.concatenate(groups)) == list(range(3 * MOST_AT_ONCE))
    assert (first[0] != second[0]).any()
