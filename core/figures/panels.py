"""Where the panels of a figure are, and where steps lie on their x axes.

Panels are stacked over one x axis, or in a grid with an x axis each. Runs of different length and speed are laid side
by side by steps, by time, or by their share of the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from core.figures.template import Figure, note, upright
from core.messages import N_, _, pgettext

Span = tuple[float, float]
Axis = Literal["step", "time", "progress"]
# In English; `axis_title` says them in the language that is spoken.
AXES: Mapping[Axis, str] = {"step": "step", "time": N_("time spent in steps, s"), "progress": N_("share of the run")}


def axis_name(letter: str, number: int, *, layout: bool = False) -> str:
    """Plotly's name of the axis of a panel, numbered from 1: "y", "y2"; in a layout "yaxis", "yaxis2"."""
    return f"{letter}{'axis' if layout else ''}{number if number > 1 else ''}"


def axes_of(number: int, x_number: int = 1) -> dict[str, str]:
    """Return the axes of a trace in the panel of this y axis, all panels over one x axis unless another is named."""
    return {"xaxis": axis_name("x", x_number), "yaxis": axis_name("y", number)}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel is.

    Attributes:
        number: of its y axis, from 1.
        x, y: its share of the width and of the height, in [0, 1], from the left and from below.
        x_number: of its x axis.
    """

    number: int
    x: Span
    y: Span
    x_number: int = 1

    @property
    def axes(self) -> dict[str, str]:
        """What a trace in this panel says of its axes."""
        return axes_of(self.number, self.x_number)

    def layout(self, x: dict[str, Any] | None = None, y: dict[str, Any] | None = None) -> dict[str, Any]:
        """What a layout says of the panel's axes, beside what each is given; a panel of a stack has no x axis."""
        made = {axis_name("y", self.number, layout=True): {"domain": list(self.y), **(y or {})}}
        if x is not None:
            made[axis_name("x", self.x_number, layout=True)] = {
                "domain": list(self.x),
                "anchor": self.axes["yaxis"],
                **x,
            }
            made[axis_name("y", self.number, layout=True)]["anchor"] = self.axes["xaxis"]
        return made

    def title(self, text: str) -> Figure:
        """The annotation above its upper left corner; the text is safe to draw already."""
        return note(text, self.x[0], self.y[1], "bottom", {"size": 12})

    def upright(self, at: float, line: dict[str, Any]) -> Figure:
        """A line through the panel at a value of x, and not through the titles between panels."""
        return upright(at, line, self.axes["xaxis"], f"{self.axes['yaxis']} domain")


def stacked(numbers: Sequence[int], gap: float, shares: Sequence[float] | None = None) -> list[Place]:
    """Panels from top to bottom over one x axis.

    Args:
        numbers: of their y axes.
        gap: between two, as a share of the height.
        shares: how high each is beside the others; equal without.
    """
    shares = shares or [1.0] * len(numbers)
    usable = (1 - gap * (len(numbers) - 1)) / sum(shares) if numbers else 1.0
    found, top = [], 1.0
    for number, share in zip(numbers, shares, strict=True):
        found.append(Place(number, (0.0, 1.0), (max(0.0, top - share * usable), top)))
        top -= share * usable + gap
    return found


def grid(count: int, columns: int, gaps: Span) -> list[Place]:
    """Panels from left to right and from top to bottom, each with its own axes.

    Args:
        gaps: between columns and between rows, as shares of width and height.
    """
    rows = max(1, -(-count // columns))
    across, down = _spans(columns, gaps[0]), _spans(rows, gaps[1])[::-1]
    return [Place(n + 1, across[n % columns], down[n // columns], n + 1) for n in range(count)]


def _spans(count: int, gap: float) -> list[Span]:
    size = (1 - gap * (count - 1)) / count
    return [(place * (size + gap), place * (size + gap) + size) for place in range(count)]


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
