"""Panels fill their figure without overlapping. Runs of different length and speed align."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from core.figures.panels import Place, axis_positions, frame_at, grid, stack_panels
from tests.cases import each

RNG = np.random.default_rng(0)


def overlap(one: Place, other: Place) -> bool:
    across = min(one.x[1], other.x[1]) - max(one.x[0], other.x[0])
    down = min(one.y[1], other.y[1]) - max(one.y[0], other.y[0])
    return across > 0 and down > 0


def test_a_stack_goes_down_by_its_shares() -> None:
    found = stack_panels([1, 3, 5], 0.1, [1.0, 2.0, 1.0])
    assert [place.number for place in found] == [1, 3, 5]
    assert [place.y[1] - place.y[0] for place in found] == pytest.approx([0.2, 0.4, 0.2])
    assert found[0].y[1] == 1.0
    assert found[-1].y[0] == pytest.approx(0.0)
    assert all(above.y[0] - below.y[1] == pytest.approx(0.1) for above, below in pairwise(found))


@each("count", [1, 2, 3, 4, 7])
def test_a_grid_is_read_like_a_page(count: int) -> None:
    found = grid(count, 3, (0.1, 0.2))
    assert len(found) == count
    assert found[0].x[0] == 0.0
    assert found[0].y[1] == pytest.approx(1.0)
    assert grid(0, 3, (0.1, 0.2)) == []
    assert not any(overlap(one, other) for one, other in combinations(found, 2))
    assert all(after.x[0] > before.x[0] or after.y[1] < before.y[1] for before, after in pairwise(found))


def test_a_share_of_the_run_means_the_same_in_runs_of_any_length() -> None:
    assert axis_positions("step", [0, 3, 7], total_steps=10) == [0.0, 3.0, 7.0]
    assert axis_positions("progress", [0, 30, 60], total_steps=60) == [0.0, 0.5, 1.0]
    whole = axis_positions("progress", range(121), total_steps=120)
    assert set(axis_positions("progress", range(0, 61, 3), total_steps=60)) <= set(whole)


def test_time_is_what_the_steps_took() -> None:
    seconds = RNG.uniform(0.1, 0.4, 10).tolist()
    steps = list(range(2, 22, 2))
    found = axis_positions("time", [0, 1, 5, 20], total_steps=20, steps=steps, step_s=seconds)
    expected = [sum(s for step, s in zip(steps, seconds, strict=True) if step <= at) for at in (0, 1, 5, 20)]
    assert found == pytest.approx(expected)


@each(("step", "frame"), [(0, None), (4, None), (5, 5), (19.5, 10), (20, 20), (99, 20)])
def test_the_latest_frame_not_after_a_step(step: float, frame: int | None) -> None:
    assert frame_at([5, 10, 20], step) == frame
