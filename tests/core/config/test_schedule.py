"""Learning rate, frame steps and settings as functions of the step. Turns are applied by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from core.config import RunConfig, parse_config
from core.config.plan import (
    DEFAULT_FRAMES,
    as_ended,
    as_launched,
    default_frame_steps,
    frame_steps,
    learning_rate_factor,
    objective_at,
    settings_at_end,
)
from core.errors import ConfigError
from tests.cases import each
from tests.core.config import made
from tests.core.config.made import DROPOUT, Turn


@each("warmup", [0.0, 0.1, 0.2, 0.5, 1.0])
@each("steps", [1, 2, 7, 100])
def test_the_rate_rises_to_1_and_falls_in_straight_lines_and_is_never_zero(steps: int, warmup: float) -> None:
    peak = round(steps * warmup)
    rising = [i / peak for i in range(1, peak + 1)]
    falling = [i / (steps - peak + 1) for i in range(steps - peak, 0, -1)]
    rates = [learning_rate_factor(step, steps, warmup) for step in range(1, steps + 1)]
    assert rates == pytest.approx([*rising, *falling])
    assert min(rates) > 0


@each("steps", [1, 2, 10, 23, 120, 5_000, 1_000_000])
def test_default_frames_hold_both_ends_and_are_denser_at_the_start(steps: int) -> None:
    frames = default_frame_steps(steps)
    assert (frames[0], frames[-1]) == (0, steps)
    assert len(frames) <= DEFAULT_FRAMES
    gaps = [after - before for before, after in itertools.pairwise(frames)]
    assert min(gaps) > 0
    if steps >= 5_000:
        assert gaps == sorted(gaps)
        assert gaps[-1] > 5 * gaps[0]
        assert len(frames) == DEFAULT_FRAMES


@each(
    ("wanted", "expected"),
    [((), (0, 10)), ((5,), (0, 5, 10)), ((7, 3, 3), (0, 3, 7, 10)), ((0, 10, 11, -1, 99), (0, 10))],
)
def test_wanted_frames_are_those_that_the_run_reaches(wanted: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert frame_steps(wanted, 10) == expected
    assert frame_steps(expected, 10) == expected


MIX = {"terms": [{"loss": "supcon", "weight": 0.9, "temperature": 0.3}, {"loss": "cross_entropy", "weight": 0.1}]}
CONTRAST = {"terms": [{"loss": "simcse", "temperature": 0.05, "views": DROPOUT}]}


TWO = [{"objective": CONTRAST, "steps": 5}, {"objective": MIX, "steps": 5}]


def turned(*turns: Turn, phases: Sequence[Any] = ({"objective": MIX, "steps": 10},)) -> RunConfig:
    return made.turned(*turns, phases=phases)


def taus(config: RunConfig, steps: int) -> list[float | None]:
    return [objective_at(config, step).objective.temperature for step in range(steps + 1)]


def test_the_order_in_the_config_does_not_matter_but_within_one_step() -> None:
    assert taus(turned((7, "temperature", 0.5), (4, "temperature", 0.08)), 8)[4:8] == [0.08, 0.08, 0.08, 0.5]
    assert taus(turned((4, "temperature", 0.5), (4, "temperature", 0.08)), 4)[4] == 0.08


def test_the_rate_is_a_factor_and_leaves_the_objective() -> None:
    config = turned((3, "learning_rate", 0.5), (5, "learning_rate", 0.0))
    assert [objective_at(config, step).rate_factor for step in (2, 3, 4, 5)] == [1.0, 0.5, 0.5, 0.0]
    assert objective_at(config, 5).objective == config.phases[0].objective


@each("step", [1, 3, 4, 8, 9, 100])
def test_a_turn_holds_until_its_phase_ends(step: int) -> None:
    config = turned((3, "temperature", 0.1), (4, "learning_rate", 2.0), (8, "temperature", 0.9), phases=TWO)
    first = step <= 5
    tau = (0.1 if step >= 3 else 0.05) if first else (0.9 if step >= 8 else 0.3)
    at = objective_at(config, step)
    assert (at.phase, at.objective.temperature) == (0 if first else 1, tau)
    assert at.rate_factor == (2.0 if step in (4, 5) else 1.0)


def test_a_draft_of_one_phase_needs_no_steps_and_one_of_two_does() -> None:
    assert taus(turned((2, "temperature", 0.1), phases=[{"objective": MIX}]), 2) == [0.3, 0.3, 0.1]
    with pytest.raises(ConfigError, match="steps"):
        objective_at(turned(phases=[{"objective": CONTRAST}, {"objective": MIX}]), 1)


@each(
    ("step", "expected"),
    [(0, [0.05, 0.3]), (3, [0.1, 0.3]), (5, [0.2, 0.3]), (6, [0.2, 0.3]), (8, [0.2, 0.9]), (10, [0.2, 0.9])],
)
def test_each_phase_ends_where_its_own_turns_left_it(step: int, expected: list[float]) -> None:
    config = turned((3, "temperature", 0.1), (5, "temperature", 0.2), (8, "temperature", 0.9), phases=TWO)
    assert [settings_at_end(config, number, step).objective.temperature for number in (0, 1)] == expected
    ended = as_ended(config, step)
    assert [phase.objective.temperature for phase in ended.phases] == expected
    assert ended.knob_turns == ()
    assert parse_config(ended.to_json()) == ended


def test_as_launched_is_the_config_without_its_turns() -> None:
    config = turned((2, "lambda", 0.5), (3, "learning_rate", 2.0))
    assert as_launched(config) == turned()
    assert as_ended(turned(), 10) == turned()


@each(("factor", "rates"), [(0.3, (1.5e-5, 1.5e-1)), (0.0, (5e-5, 0.5)), (100.0, (5e-5, 0.5))])
def test_as_ended_carries_rates_that_a_launch_could_have(factor: float, rates: tuple[float, float]) -> None:
    given = {"learning_rate": 5e-5, "classifier_learning_rate": 0.5}
    config = turned((4, "learning_rate", factor), phases=[{"objective": MIX, "steps": 10, "optimiser": given}])
    ended = as_ended(config, 10).phases[0].optimiser
    assert (ended.learning_rate, ended.classifier_learning_rate, ended.layer_decay) == (*rates, 1.0)
