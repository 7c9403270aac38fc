"""How fast a run goes and how long it will take, from the steps that it has taken. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from core.config import RunConfig
from core.events import Step

# The first steps of an attempt, or of a phase, fill caches and memory and are slower than those to come.
WARM_UP_STEPS = 2
FEWEST_STEPS = 3
RECENT_STEPS = 20
# Frames are far apart late in a run; this many steps hold some of them.
PACE_STEPS = 400


class Pace(NamedTuple):
    """Texts that training reads in a second, and the seconds of work left in the phase, frames included."""

    texts_per_s: float
    remaining_s: float


def pace(steps: Sequence[Step], times: Mapping[int, float], frames: Sequence[int], config: RunConfig) -> Pace | None:
    """The pace of a run's current phase; None before enough of its steps were measured.

    What counts is the time that steps and frames took themselves: neither loading the encoder nor a pause does.

    Args:
        steps: all steps so far, ascending.
        times: when the newest steps were recorded, by step.
        frames: steps whose frames are there.
        config: prepared, with the steps at which frames are due.
    """
    if not steps:
        return None
    now = steps[-1].step
    phase = config.phase_at(now)
    end = config.phase_ends[phase]
    first = config.phase_ends[phase - 1] + 1 if phase else 1
    timed = [step for step in steps[-PACE_STEPS:] if step.step >= first and step.values.get("step_s", 0.0) > 0]
    recent = [step for step in timed if step.step >= first + WARM_UP_STEPS][-RECENT_STEPS:]
    if len(recent) < FEWEST_STEPS:
        return None
    step_s = median(step.values["step_s"] for step in recent)
    due = sum(now < step <= end for step in config.probe.frame_steps or ())
    remaining_s = step_s * (end - now) + _frame_s(timed, times, frames) * due
    texts = recent[-1].values.get("texts", config.phases[phase].batch_size)
    return Pace(texts / step_s, remaining_s)


def _frame_s(steps: Sequence[Step], times: Mapping[int, float], frames: Sequence[int]) -> float:
    """What a frame takes: the time from its step to the end of the next, less that step's own; 0 while unknown.

    The median, so that a pause after one of several frames changes little.
    """
    known = frozenset(frames)
    gaps = [
        max(0.0, times[after.step] - times[before.step] - after.values["step_s"])
        for before, after in pairwise(steps)
        if before.step in known and after.step == before.step + 1 and {before.step, after.step} <= times.keys()
    ]
    return median(gaps) if gaps else 0.0
