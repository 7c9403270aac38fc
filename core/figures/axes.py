"""What runs of different length and speed are laid side by side by: steps, time, or their share of the run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from core.messages import N_, _, pgettext

Axis = Literal["step", "time", "progress"]
# In English; `axis_title` says them in the language that is spoken.
AXES: Mapping[Axis, str] = {"step": "step", "time": N_("time spent in steps, s"), "progress": N_("share of the run")}


class Moment(NamedTuple):
    """A place on an axis, and the step of the frame that each run shows there (None: it has none yet)."""

    place: float
    frames: tuple[int | None, ...]


def axis_title(axis: Axis) -> str:
    """What an axis is called."""
    # A number of steps is another message, whose translation holds the number.
    return pgettext("axis", "step") if axis == "step" else _(AXES[axis])


def value_at_step(name: str, form: str) -> str:
    """What a hover says of a point, for Plotly to fill in. Args: name: of its line; form: d3's, of its value."""
    return _("{name} {value}, step {step}", name=name, value=f"%{{y:{form}}}", step="%{x}")


def places(
    axis: Axis, at: Sequence[int], *, total_steps: int, steps: Sequence[int] = (), step_s: Sequence[float] = ()
) -> list[float]:
    """Where steps of one run lie on an axis.

    "time" is the sum of the seconds that its steps took, up to and including each: what the model spent learning, 0 at
    step 0, without loading, frames, evaluations or pauses, so that it is the same however often a run was looked at.

    Args:
        at: the steps that are asked for, 0 … total_steps.
        total_steps: of the run, all phases together; its share of them is "progress", in [0, 1].
        steps, step_s: for "time", the steps that were taken, ascending, and the seconds of each.
    """
    if axis == "step":
        return [float(step) for step in at]
    if axis == "progress":
        return [step / total_steps for step in at]
    spent = [0.0, *accumulate(step_s)]
    return [spent[bisect_right(steps, step)] for step in at]


def frame_at(steps: Sequence[int], step: float) -> int | None:
    """The step of the latest frame not after a step; None where the first comes later. `steps` ascend."""
    count = bisect_right(steps, step)
    return steps[count - 1] if count else None


def moments(frame_steps: Sequence[Sequence[int]], frame_places: Sequence[Sequence[float]]) -> tuple[Moment, ...]:
    """Every place at which some run has a frame, ascending, with what each run shows there: its latest so far.

    Args:
        frame_steps: [R] of the steps of each run's frames, ascending.
        frame_places: where these lie on the axis, by `places`.
    """
    every = sorted({place for of_run in frame_places for place in of_run})
    return tuple(Moment(place, _shown_at(place, frame_steps, frame_places)) for place in every)


def _shown_at(
    place: float, frame_steps: Sequence[Sequence[int]], frame_places: Sequence[Sequence[float]]
) -> tuple[int | None, ...]:
    counts = [bisect_right(of_run, place) for of_run in frame_places]
    return tuple(steps[count - 1] if count else None for steps, count in zip(frame_steps, counts, strict=True))
