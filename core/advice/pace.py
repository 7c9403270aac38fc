"""Speed and remaining time of a run, from its completed steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from core.config import RunConfig
from core.events import Evaluation, Step
from core.messages import N_

# The first steps of an attempt or a phase fill caches and memory, so they are slower than later ones.
WARM_UP_STEPS = 2
FEWEST_STEPS = 3
RECENT_STEPS = 20
# Late in a run, frames are far apart; this many steps contain some of them.
PACE_STEPS = 400
# Work after the last frame of a run, in this order.
TEST, WEIGHTS = N_("scoring the test split"), N_("checking and saving the weights")


class Pace(NamedTuple):
    """Training texts per second, and seconds of work left in the phase.

    The remaining time includes frames and, in the last phase, the work after the last frame.
    """

    texts_per_s: float
    remaining_s: float


def closing_work(config: RunConfig, facts: Mapping[str, float], evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """Return the work of a run after its last frame, each item as the number of frames that read as many texts.

    Args:
        facts: facts of the run, with the numbers of rows of its splits.
        evaluations: evaluations so far.
    """
    rows, files = facts.get("validation_rows", 0.0), 1 + len(config.checkpoint.snapshot_steps or ())
    of_frame = max(1.0, rows + (config.probe.train_size or 0))
    # Each weight file is checked: in half precision, it has to predict the validation split as in full precision.
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
    """Return the pace of a run's current phase; None until enough of its steps are measured.

    Only the time of steps and frames counts, not that of loading the encoder or of a pause.

    Args:
        steps: all steps so far, ascending.
        times: recording times of the newest steps, by step.
        frames: steps of the existing frames.
        config: prepared, with the steps of its frames.
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
    # A frame takes the time from its step to the end of the next step, without the time of that step itself. The median
    # limits the effect of a pause after one of the frames.
    known = frozenset(frames)
    gaps = [
        max(0.0, times[after.step] - times[before.step] - after.values["step_s"])
        for before, after in pairwise(timed)
        if before.step in known and after.step == before.step + 1 and {before.step, after.step} <= times.keys()
    ]
    remaining_s = step_s * (end - now) + (median(gaps) if gaps else 0.0) * (due + more)
    texts = recent[-1].values.get("texts", config.phases[phase].batch_size)
    return Pace(texts / step_s, remaining_s)
