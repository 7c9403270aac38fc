"""Runs of different length and speed, side by side."""

from __future__ import annotations

import numpy as np
import pytest

from core.figures.axes import AXES, frame_at, places
from tests.cases import each

RNG = np.random.default_rng(0)


def test_steps_are_themselves() -> None:
    assert places("step", [0, 3, 7], total_steps=10) == [0.0, 3.0, 7.0]


def test_a_share_of_the_run_means_the_same_in_runs_of_any_length() -> None:
    assert places("progress", [0, 30, 60], total_steps=60) == [0.0, 0.5, 1.0]
    assert set(places("progress", range(0, 61, 3), total_steps=60)) <= set(
        places("progress", range(121), total_steps=120)
    )


def test_time_is_what_the_steps_took() -> None:
    seconds = RNG.uniform(0.1, 0.4, 10).tolist()
    steps = list(range(1, 11))
    found = places("time", [0, 1, 5, 10], total_steps=10, steps=steps, step_s=seconds)
    expected = [sum(s for step, s in zip(steps, seconds, strict=True) if step <= at) for at in (0, 1, 5, 10)]
    assert found == pytest.approx(expected)


def test_time_goes_by_the_steps_that_are_known() -> None:
    assert places("time", [0, 2, 3, 9], total_steps=9, steps=[2, 4], step_s=[1.0, 2.0]) == [0.0, 1.0, 1.0, 3.0]


def test_every_axis_has_a_title() -> None:
    assert all(AXES.values())
    assert [len(places(axis, [0, 1], total_steps=1, steps=[1], step_s=[1.0])) for axis in AXES] == [2, 2, 2]


@each(("step", "frame"), [(0, 0), (4, 0), (5, 5), (19.5, 10), (20, 20), (99, 20)])
def test_the_latest_frame_not_after_a_step(step: float, frame: int) -> None:
    assert frame_at([0, 5, 10, 20], step) == frame


def test_before_the_first_frame_there_is_none() -> None:
    assert frame_at([5, 10], 4) is None
    assert frame_at([], 4) is None
