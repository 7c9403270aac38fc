"""Curves of measures over the levels of a numeric setting, with a line for each level of another setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.figures.map_data import SCALE
from core.figures.panels import axis_name, stack_panels
from core.figures.template import QUIET, Figure, axis_heading, base_layout, curve, short_text
from core.messages import _
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS

GAP = 0.14
PANEL_PX = 150


class LevelPanel(NamedTuple):
    """A measure at every level.

    Attributes:
        title: its name.
        lines: by level of the other setting, the mean at each level, None where unknown.
        spreads: the standard deviation of each mean, None where unknown.
        references: by name, up to two values that do not depend on the levels, drawn as dashed lines.
        is_share: True if the values are fractions.
    """

    title: str
    lines: Sequence[Sequence[float | None]]
    spreads: Sequence[Sequence[float | None]]
    references: Mapping[str, float]
    is_share: bool


def level_curves(
    panels: Sequence[LevelPanel], levels: Sequence[float], names: Sequence[str], heading: str, *, log: bool
) -> Figure:
    """Draw panels over one x axis.

    Args:
        levels: values of the setting on the x axis.
        names: the name of each line.
        heading: title of the x axis.
        log: whether the x axis is logarithmic.
    """
    order = sorted(range(len(levels)), key=levels.__getitem__)
    x = [levels[place] for place in order]
    ticks = {"type": "log" if log else "linear", "tickvals": x, "ticktext": [f"{value:g}" for value in x]}
    layout = base_layout(
        margin={"l": 56, "r": 16, "t": 64, "b": 44},
        height=PANEL_PX * len(panels) + 108,
        legend={"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "font": {"size": 12}},
        xaxis=ticks | {"title": axis_heading(heading), "zeroline": False, "anchor": axis_name("y", len(panels))},
        shapes=[],
        annotations=[],
    )
    traces = []
    for panel, place in zip(panels, stack_panels(range(1, len(panels) + 1), GAP), strict=True):
        y = {"nticks": 4, "zeroline": False}
        layout |= place.layout(y | {"tickformat": PERCENT_TICKS} if panel.is_share else y)
        layout["annotations"].append(place.title(panel.title))
        for number, (name, values, spreads) in enumerate(zip(names, panel.lines, panel.spreads, strict=True)):
            colour = SCALE[round(number * (len(SCALE) - 2) / max(1, len(names) - 1))]  # the last one is pale
            form = PERCENT_FORMAT if panel.is_share else ".3g"
            hover = _("{name}: {value} at {level}", name=short_text(name), value=f"%{{y:{form}}}", level="%{x:g}")
            bars = {"type": "data", "array": [spreads[at] or 0.0 for at in order], "thickness": 1, "width": 3}
            traces.append(
                curve(
                    x,
                    [values[at] for at in order],
                    {"color": colour, "width": 2},
                    place.axes,
                    mode="lines+markers",
                    name=short_text(name),
                    showlegend=place.number == 1 and bool(name),
                    legendgroup=name,
                    hovertemplate=f"{hover}<extra></extra>",
                    **({"error_y": bars} if any(spreads) else {}),
                )
            )
        for (name, value), end in zip(panel.references.items(), ("end", "start"), strict=False):
            line = {"color": QUIET, "width": 1, "dash": "dash"}
            ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": value, "y1": value}
            label = {"text": short_text(name), "textposition": end, "font": {"size": 11, "color": QUIET}}
            layout["shapes"].append({"type": "line", "yref": place.axes["yaxis"], "line": line, "label": label, **ends})
    return {"data": traces, "layout": layout}
