"""What runs of different length and speed are laid side by side by: steps, time, or their share of the run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal

from core.messages import N_, _, pgettext

Axis = Literal["step", "time", "progress"]
# In English; `axis_title` says them in the language that is spoken.
AXES: Mapping[Axis, str] = {"step": "step", "time": N_("time spent in steps, s"), "progress": N_("share of the run")}


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
