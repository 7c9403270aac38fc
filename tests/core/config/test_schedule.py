"""Learning rate and frame steps as functions of the step."""

from __future__ import annotations

import itertools

import pytest

from core.config.schedule import DEFAULT_FRAMES, default_frame_steps, frame_steps, learning_rate_factor
from tests.cases import each


def factors(steps: int, warmup: float) -> list[float]:
    return [learning_rate_factor(step, steps, warmup) for step in range(1, steps + 1)]


@each("warmup", [0.0, 0.1, 0.5, 1.0])
@each("steps", [1, 2, 7, 100])
def test_the_rate_rises_then_falls_and_is_never_zero(steps: int, warmup: float) -> None:
    rates = factors(steps, warmup)
    peak = round(steps * warmup)
    assert all(0 < rate <= 1 for rate in rates)
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    if peak:
        assert rates[peak - 1] == 1.0


def test_both_slopes_are_straight() -> None:
    rates = factors(100, 0.2)
    assert rates[:20] == pytest.approx([i / 20 for i in range(1, 21)])
    assert rates[20:] == pytest.approx([i / 81 for i in range(80, 0, -1)])


@each("steps", [1, 2, 10, 23, 120, 5_000, 1_000_000])
def test_default_frames_hold_both_ends(steps: int) -> None:
    frames = default_frame_steps(steps)
    assert frames[0] == 0
    assert frames[-1] == steps
    assert list(frames) == sorted(set(frames))
    assert len(frames) <= DEFAULT_FRAMES


def test_default_frames_are_denser_at_the_start() -> None:
    gaps = [after - before for before, after in itertools.pairwise(default_frame_steps(5_000))]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 5 * gaps[0]
    assert len(gaps) == DEFAULT_FRAMES - 1


@each(
    ("wanted", "expected"),
    [((), (0, 10)), ((5,), (0, 5, 10)), ((7, 3, 3), (0, 3, 7, 10)), ((0, 10, 11, -1, 99), (0, 10))],
)
def test_wanted_frames_are_those_that_the_run_reaches(wanted: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert frame_steps(wanted, 10) == expected
    assert frame_steps(expected, 10) == expected
