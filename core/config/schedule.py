"""Values that apply at a step: learning rate, frames, and the settings after knob turns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from core.config import MAX_STEPS, RATE, PhaseConfig, RunConfig
from core.config.objective import ObjectiveConfig

DEFAULT_FRAMES = 24
# Exponent of the spacing. Above 1, frames are denser at the start, where the map moves most.
FRAME_SPACING = 1.6


def learning_rate_factor(step: int, steps: int, warmup_fraction: float) -> float:
    """Return the factor of a linear warm-up to 1 and a linear decay; it is never 0, so that no step is wasted.

    Args:
        step: 1 … steps.
        warmup_fraction: share of the steps that warm up.
    """
    warmup = round(steps * warmup_fraction)
    if step <= warmup:
        return step / warmup
    return (steps - step + 1) / (steps - warmup + 1)


def default_frame_steps(steps: int, frames: int = DEFAULT_FRAMES) -> tuple[int, ...]:
    """Return about `frames` steps from 0 to `steps`, denser at the start."""
    spaced = (round(steps * (i / (frames - 1)) ** FRAME_SPACING) for i in range(frames))
    return tuple(sorted({0, steps, *spaced}))


def frame_steps(wanted: Sequence[int], steps: int) -> tuple[int, ...]:
    """Return the wanted steps that the run reaches, plus step 0 and the last step."""
    return tuple(sorted({0, steps, *(step for step in wanted if 0 < step < steps)}))


class SettingsAt(NamedTuple):
    """The settings that a step used.

    Attributes:
        phase: number of the step's phase, from 0.
        objective: of that phase, at the current knob values; `objective.temperature` is τ and `objective.weight` λ,
            each None if the objective has no single one.
        rate_factor: factor on the learning-rate schedule; 1 unless that knob was turned.
    """

    phase: int
    objective: ObjectiveConfig
    rate_factor: float


class Stage(NamedTuple):
    """Settings, and the first step that used them."""

    step: int
    settings: SettingsAt


def objective_at(config: RunConfig, step: int) -> SettingsAt:
    """Return the settings that a step used; the single source for the training loop and for every page.

    Args:
        config: with the knob turns of the run (`Store.effective_config`); prepared, if it has two phases.
        step: 1, 2, …; step 0 has the settings as launched, and a step beyond the end those of the last phase.
    Raises: ConfigError for a config of two phases that was not prepared.
    Edge: a turn holds until its phase ends. Of several turns at one step, the last in the config wins.
    """
    found = stages(config, config.phase_at(step))
    return found[max(0, bisect_right(found, step, key=lambda stage: stage.step) - 1)].settings


@lru_cache(maxsize=512)
def stages(config: RunConfig, number: int) -> tuple[Stage, ...]:
    """Return the settings of a phase, numbered from 0: as launched (step 0), then from each turn on.

    Raises: ConfigError for a config of two phases that has turns and was not prepared.
    """
    now = SettingsAt(number, config.phases[number].objective, 1.0)
    found = {0: now}
    for turn in sorted(config.knob_turns, key=lambda turn: turn.step):  # stable: keeps the order within a step
        if config.phase_at(turn.step) != number:
            continue
        if turn.name == RATE:
            now = now._replace(rate_factor=turn.value)
        else:
            now = now._replace(objective=now.objective.with_knob(turn.name, turn.value))
        found[turn.step] = now
    return tuple(Stage(step, settings) for step, settings in found.items())


def settings_at_end(config: RunConfig, number: int, step: int = MAX_STEPS) -> SettingsAt:
    """Return the last settings of a phase, numbered from 0: those at its end, or at `step` of a run in progress.

    Edge: a phase that begins after that step has its settings as launched.
    """
    return [stage.settings for stage in stages(config, number) if stage.step <= step][-1]


def as_launched(config: RunConfig) -> RunConfig:
    """Return the config without its knob turns."""
    return config.model_copy(update={"knob_turns": ()})


def as_ended(config: RunConfig, step: int) -> RunConfig:
    """Return a config that starts with the final knob values of each phase.

    Args:
        config: with the knob turns of the run (`Store.effective_config`).
        step: the last step that the run completed; turns planned for later steps do not count.
    Edge: a learning-rate factor that leaves no valid rate (0, or a rate above 1) leaves the rate as launched.
    """
    phases = []
    for number, phase in enumerate(config.phases):
        used = settings_at_end(config, number, step)
        factor = used.rate_factor if rate_carries_over(phase, used.rate_factor) else 1.0
        rates = {name: getattr(phase.optimiser, name) for name in ("learning_rate", "classifier_learning_rate")}
        # Twelve digits, so that 5e-05 × 0.3 is 1.5e-05 and not 1.4999999999999999e-05.
        scaled = {name: float(f"{rate * factor:.12g}") for name, rate in rates.items() if rate is not None}
        optimiser = phase.optimiser.model_copy(update=scaled if factor != 1 else {})
        phases.append(phase.model_copy(update={"objective": used.objective, "optimiser": optimiser}))
    return config.model_copy(update={"phases": tuple(phases), "knob_turns": ()})


def rate_carries_over(phase: PhaseConfig, factor: float) -> bool:
    """Return whether the learning rates can absorb a factor on the schedule: all stay above 0 and at most 1."""
    rates = (phase.optimiser.learning_rate, phase.optimiser.classifier_learning_rate)
    return all(0 < rate * factor <= 1 for rate in rates if rate is not None)
