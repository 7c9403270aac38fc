"""Representation measures over the frames of a run, one small curve each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from core.figures.panels import grid
from core.figures.template import ACCENT, QUIET, Figure, axis_heading, base_layout, rounded
from core.messages import _
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS

COLUMNS = 3
GAPS = (0.09, 0.16)
ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}
ROW_PX = 170


def measures_figure(
    steps: Sequence[int],
    values: Mapping[str, Sequence[float | None]],
    names: Mapping[str, tuple[str, str]],
    shown: int,
    *,
    axis: str,
    revision: str,
    shares: Collection[str] = (),
) -> Figure:
    """Small multiples.

    Args:
        steps: F numbers of frames.
        values: by measure, F values, None where one cannot be computed; a measure with none at all is left out.
        names: by measure, its label and whether "higher", "lower" or "neither" is better (an arrow says so).
        shown: the frame that is looked at, marked by a line.
        axis: what the frames are, such as "step", in the language that is spoken.
        shares: measures that are written as percentages.
    """
    drawn = [name for name in values if any(value is not None for value in values[name])]
    rows = max(1, -(-len(drawn) // COLUMNS))
    layout = base_layout(
        uirevision=revision,
        showlegend=False,
        margin={"l": 48, "r": 12, "t": 28, "b": 42},
        height=rows * ROW_PX + 60,
        shapes=[],
        annotations=[],
    )
    traces: list[dict[str, Any]] = []
    for number, (name, place) in enumerate(zip(drawn, grid(len(drawn), COLUMNS, GAPS), strict=True)):
        label, better = _(names[name][0]), names[name][1]
        last_row = number + COLUMNS >= len(drawn)
        title = axis_heading(axis) if last_row else None
        x = {"nticks": 5, "zeroline": False, "title": title}
        ticks = {"tickformat": PERCENT_TICKS} if name in shares else {}
        layout |= place.layout(x, {"nticks": 4, "zeroline": False, **ticks})
        form = PERCENT_FORMAT if name in shares else ".4g"
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": label,
                "x": list(steps),
                "y": rounded(values[name]),
                **place.axes,
                "line": {"color": ACCENT, "width": 1.8},
                "marker": {"size": 4},
                "hovertemplate": f"{label} %{{y:{form}}}, {axis} %{{x}}<extra></extra>",
            }
        )
        layout["shapes"].append(place.upright(shown, {"color": QUIET, "width": 1}))
        layout["annotations"].append(place.title(f"{label}{ARROWS[better]}"))
    return {"data": traces, "layout": layout}
