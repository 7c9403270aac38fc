"""Layout of a figure's panels, and positions of steps on their x axes.

Panels are stacked over one x axis, or arranged in a grid with one x axis each. Runs of different length and speed are
compared by steps, by time, or by share of the run.
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
# In English; `axis_title` translates them.
AXES: Mapping[Axis, str] = {"step": "step", "time": N_("training time, s"), "progress": N_("fraction of the run")}


def axis_name(letter: str, number: int, *, layout: bool = False) -> str:
    """Return Plotly's name for a panel's axis, numbered from 1: "y", "y2"; in a layout "yaxis", "yaxis2"."""
    return f"{letter}{'axis' if layout else ''}{number if number > 1 else ''}"


def axes_of(number: int, x_number: int = 1) -> dict[str, str]:
    """Return the axis names of a trace in panel `number`. By default all panels share the first x axis."""
    return {"xaxis": axis_name("x", x_number), "yaxis": axis_name("y", number)}


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a panel.

    Attributes:
        number: number of its y axis, from 1.
        x, y: its horizontal and vertical extent as fractions in [0, 1], from the left and from the bottom.
        x_number: number of its x axis.
    """

    number: int
    x: Span
    y: Span
    x_number: int = 1

    @property
    def axes(self) -> dict[str, str]:
        """Axis names of a trace in this panel."""
        return axes_of(self.number, self.x_number)

    def layout(self, y: dict[str, Any], x: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the layout of the panel's axes, updated with `y` and `x`; omit `x` for a stacked panel."""
        of_y = {"domain": list(self.y), **y}
        if x is None:
            return {axis_name("y", self.number, layout=True): of_y}
        return {
            axis_name("y", self.number, layout=True): of_y | {"anchor": self.axes["xaxis"]},
            axis_name("x", self.x_number, layout=True): {"domain": list(self.x), "anchor": self.axes["yaxis"], **x},
        }

    def title(self, text: str) -> Figure:
        """Return an annotation above the upper left corner. Args: text: escaped markup."""
        return note(text, self.x[0], self.y[1], "bottom", {"size": 12})

    def upright(self, at: float, line: dict[str, Any]) -> Figure:
        """Return a vertical line through the panel at an x value; it does not cross the titles between panels."""
        return upright(at, line, self.axes["xaxis"], f"{self.axes['yaxis']} domain")


def stack_panels(numbers: Sequence[int], gap: float, shares: Sequence[float] | None = None) -> list[Place]:
    """Return panels from top to bottom over one x axis.

    Args:
        numbers: numbers of their y axes.
        gap: space between two panels, as a share of the height.
        shares: relative heights; equal if None.
    """
    shares = shares or [1.0] * len(numbers)
    usable = (1 - gap * (len(numbers) - 1)) / sum(shares) if numbers else 1.0
    found, top = [], 1.0
    for number, share in zip(numbers, shares, strict=True):
        found.append(Place(number, (0.0, 1.0), (max(0.0, top - share * usable), top)))
        top -= share * usable + gap
    return found


def grid(count: int, columns: int, gaps: Span) -> list[Place]:
    """Return panels from left to right and from top to bottom, each with its own axes.

    Args:
        gaps: space between columns and between rows, as shares of width and height.
    """
    rows = max(1, -(-count // columns))
    across, down = _spans(columns, gaps[0]), _spans(rows, gaps[1])[::-1]
    return [Place(n + 1, across[n % columns], down[n // columns], n + 1) for n in range(count)]


def _spans(count: int, gap: float) -> list[Span]:
    size = (1 - gap * (count - 1)) / count
    return [(place * (size + gap), place * (size + gap) + size) for place in range(count)]


def axis_title(axis: Axis) -> str:
    """Return the translated title of an axis."""
    # The context distinguishes this "step" from messages with a number of steps.
    return pgettext("axis", "step") if axis == "step" else _(AXES[axis])


def value_at_step(name: str, form: str) -> str:
    """Return the hover template of a point. Args: name: name of the line; form: d3 format of the value."""
    return _("{name} {value}, step {step}", name=name, value=f"%{{y:{form}}}", step="%{x}")


def axis_positions(
    axis: Axis, at: Sequence[int], *, total_steps: int, steps: Sequence[int] = (), step_s: Sequence[float] = ()
) -> list[float]:
    """Return the positions of a run's steps on an axis.

    "time" is the training time up to and including a step: the sum of the step durations, 0 at step 0. It excludes
    loading, frames, evaluations and pauses, so it does not depend on how often a run is evaluated.

    Args:
        at: steps to convert, 0 … total_steps.
        total_steps: steps of the run over all phases; "progress" is the fraction of them, in [0, 1].
        steps, step_s: for "time", the steps taken, ascending, and their durations in seconds.
    """
    if axis == "step":
        return [float(step) for step in at]
    if axis == "progress":
        return [step / total_steps for step in at]
    spent = [0.0, *accumulate(step_s)]
    return [spent[bisect_right(steps, step)] for step in at]


def frame_at(steps: Sequence[int], step: float) -> int | None:
    """Return the latest frame at or before a step; None if there is none. Args: steps: of the frames, ascending."""
    count = bisect_right(steps, step)
    return steps[count - 1] if count else None
