"""The pace of a run, computed from the times of its steps."""

from __future__ import annotations

from typing import Any

import pytest

from core.advice.pace import TEST, WEIGHTS, closing_work, pace
from core.config import RunConfig, parse_config
from core.config.sections import CheckpointConfig
from core.events import Evaluation, Step


def made(*steps: int, frames: tuple[int, ...] = ()) -> RunConfig:
    phases: list[dict[str, Any]] = [{"steps": count, "batch_size": 16} for count in steps]
    return parse_config({"phases": phases, "probe": {"frame_steps": list(frames)}})


def taken(seconds: list[float], first: int = 1) -> list[Step]:
    return [Step(first + i, {"step_s": s, "texts": 16.0}) for i, s in enumerate(seconds)]


def test_no_estimate_before_a_few_steps_were_measured() -> None:
    for count in range(5):
        assert pace(taken([9.0] * count), {}, [], made(120)) is None
    assert pace(taken([9.0] * 5), {}, [], made(120)) is not None


def test_neither_start_up_nor_a_pause_counts() -> None:
    """51 s of start-up before step 1 once made an estimate of 1 h 42 min."""
    steps = taken([2.0, 1.0, *[0.5] * 8])
    times = {step.step: 51.0 + step.step + (600.0 if step.step > 6 else 0.0) for step in steps}
    found = pace(steps, times, [], made(120))
    assert found is not None
    assert found.remaining_s == pytest.approx(110 * 0.5)
    assert found.texts_per_s == pytest.approx(32)


def test_frames_that_are_due_cost_what_the_others_did() -> None:
    steps = taken([0.5] * 10)
    frames, cost = (2, 4, 6, 8, 50, 120), 3.0
    times, now = {}, 100.0
    for step in steps:
        now += 0.5
        times[step.step] = now
        now += cost if step.step in frames else 0.0
        now += 600.0 if step.step == 4 else 0.0  # paused
    found = pace(steps, times, [step for step in frames if step <= 10], made(120, frames=frames))
    assert found is not None
    assert found.remaining_s == pytest.approx(110 * 0.5 + 2 * cost)


def test_the_work_after_the_last_frame_counts_in_frames_and_in_the_last_phase() -> None:
    config = made(10, 10, frames=(12, 20)).model_copy(update={"checkpoint": CheckpointConfig(snapshot_steps=(12,))})
    facts = {"validation_rows": 100.0, "test_rows": 300.0}
    closing = closing_work(config, facts, [])
    assert closing == {TEST: 3.0, WEIGHTS: 2.0}
    assert closing_work(config, facts, [Evaluation(20, "test", {})]) == {WEIGHTS: 2.0}
    steps = taken([0.5] * 20)
    times = {step.step: 0.5 * step.step + (3.0 if step.step > 12 else 0.0) for step in steps}
    first, last = pace(steps[:8], times, [], config, 5.0), pace(steps, times, [12], config, 5.0)
    assert first is not None
    assert last is not None
    assert first.remaining_s == pytest.approx(2 * 0.5)
    assert last.remaining_s == pytest.approx(6 * 3.0)  # the last frame is still missing


def test_a_second_phase_has_a_pace_of_its_own() -> None:
    config = made(10, 40)
    first = taken([4.0] * 10)
    assert pace(first[:8], {}, [], config) == pytest.approx((4.0, 2 * 4.0))
    assert pace([*first, *taken([0.1] * 4, first=11)], {}, [], config) is None
    found = pace([*first, *taken([0.1] * 10, first=11)], {}, [], config)
    assert found is not None
    assert found.remaining_s == pytest.approx(30 * 0.1)
