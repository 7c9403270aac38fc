"""Speed and remaining time of a run, from the steps that it has taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from core.config import RunConfig
from core.events import Evaluation, Step
from core.messages import N_

# The first steps of an attempt, or of a phase, fill caches and memory and are slower than those to come.
WARM_UP_STEPS = 2
FEWEST_STEPS = 3
RECENT_STEPS = 20
# Frames are far apart late in a run; this many steps hold some of them.
PACE_STEPS = 400
# What a run does after its last frame, in this order.
TEST, WEIGHTS = N_("scoring the test split"), N_("checking and saving the weights")


class Pace(NamedTuple):
    """Texts that training reads in a second, and the seconds of work left in the phase.

    Frames count and, in the last phase, the end of the run.
    """

    texts_per_s: float
    remaining_s: float


def closing_work(config: RunConfig, facts: Mapping[str, float], evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """The work of a run after its last frame, each part with how many frames read as many texts.

    Args:
        facts: of the run, with the rows of its splits; evaluations: those so far.
    """
    rows, files = facts.get("validation_rows", 0.0), 1 + len(config.checkpoint.snapshot_steps or ())
    of_frame = max(1.0, rows + (config.probe.train_size or 0))
    # Each file of weights has to predict the validation split in half precision as it does in full.
    work = {TEST: facts.get("test_rows", 0.0) / of_frame, WEIGHTS: files * rows / of_frame}
    if any(evaluation.split == "test" for evaluation in evaluations):
        del work[TEST]
    return work


def pace(
    steps: Sequence[Step],
    times: Mapping[int, float],
    frames: Sequence[int],
    config: RunConfig,
    closing: float = 0.0,
) -> Pace | None:
    """The pace of a run's current phase; None before enough of its steps were measured.

    What counts is the time that steps and frames took themselves: neither loading the encoder nor a pause does.

    Args:
        steps: all steps so far, ascending.
        times: when the newest steps were recorded, by step.
        frames: steps whose frames are there.
        config: prepared, with the steps at which frames are due.
        closing: the work after the last frame, in frames.
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
    due = sum(now <= step <= end and step not in frames for step in config.probe.frame_steps or ())
    more = closing if end == config.steps else 0.0
    remaining_s = step_s * (end - now) + _frame_s(timed, times, frames) * (due + more)
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
