"""What a run used at a step: its config as launched, with the knob turns up to that step."""

from __future__ import annotations

from typing import NamedTuple

from core.config import RATE, RunConfig
from core.objectives import ObjectiveConfig


class SettingsAt(NamedTuple):
    """The settings that a step used.

    Attributes:
        phase: number of the step's phase, from 0.
        objective: of that phase, with its knobs where they were turned to; `objective.temperature` is τ and
            `objective.weight` λ, each None where the objective has no single one.
        rate_factor: multiplies the learning-rate schedule; 1 unless that knob was turned.
    """

    phase: int
    objective: ObjectiveConfig
    rate_factor: float


def objective_at(config: RunConfig, step: int) -> SettingsAt:
    """The settings that a step used; the single source for the training loop and for every page.

    Args:
        config: with the knob turns of the run (`Store.effective_config`); prepared, where it has two phases.
        step: 1, 2, …; step 0, before the first, has the settings as launched, and a step beyond the end those of the
            last phase.
    Raises: ConfigError for a config of two phases that was not prepared.
    Edge: a turn holds until its phase ends. Of several turns at one step the later in the config wins.
    """
    phase = config.phase_at(step)
    objective, rate_factor = config.phases[phase].objective, 1.0
    for turn in sorted(config.knob_turns, key=lambda turn: turn.step):  # stable, so that order within a step is kept
        if turn.step > step or config.phase_at(turn.step) != phase:
            continue
        if turn.name == RATE:
            rate_factor = turn.value
        else:
            objective = objective.turned(turn.name, turn.value)
    return SettingsAt(phase, objective, rate_factor)
