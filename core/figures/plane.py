"""The alignment and uniformity of runs as paths over their frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.figures.run_curves import DASHES
from core.figures.template import QUIET, Figure, axis_heading, base_layout, class_colour, curve, note, short_text
from core.messages import _

HEIGHT_PX, LEGEND_WIDTH = 380, 36
# Measures of a frame by name, by the step of the frame, in order.
Path = Mapping[int, Mapping[str, float | None]]


def plane_figure(paths: Mapping[str, Path], *, revision: str) -> Figure:
    """Draw a path for each run, from its first frame (open circle) to its last (arrow), and the point of a collapse.

    Args:
        paths: measures by the name of the run, which is untrusted.
    Source: Wang & Isola 2020, arXiv:2005.10242.
    """
    traces = []
    for number, (name, path) in enumerate(paths.items()):
        points = [(step, of.get("alignment"), of.get("uniformity")) for step, of in path.items()]
        known = [point for point in points if None not in point]
        if not known:
            continue
        steps, x, y = zip(*known, strict=True)
        last, colour = len(steps) - 1, class_colour(number)
        # Plotly draws no mark at the first point of a path whose marks turn with it.
        first: dict[str, Any] = {"mode": "markers", "marker": {"symbol": "circle-open", "size": 9, "color": colour}}
        traces.append(curve(x[:1], y[:1], {}, {}, showlegend=False, hoverinfo="skip", **first))
        marker = {
            "angleref": "previous",
            "color": colour,
            "symbol": [*["circle"] * last, "arrow"],
            "size": [*[4] * last, 13],
        }
        hover = _("step {step}: alignment {x}, uniformity {y}", step="%{text}", x="%{x:.3f}", y="%{y:.3f}")
        more: dict[str, Any] = {"name": short_text(name, LEGEND_WIDTH), "hovertemplate": hover, "mode": "lines+markers"}
        more |= {"marker": marker, "text": [f"{step:,}" for step in steps]}
        traces.append(curve(x, y, {"color": colour, "width": 1.8, "dash": DASHES[number]}, {}, **more))
    layout = base_layout(
        uirevision=revision,
        height=HEIGHT_PX,
        showlegend=len(paths) > 1,
        margin={"l": 60, "r": 12, "t": 36, "b": 44},
        xaxis={
            "title": axis_heading(_("Alignment (lower: classes are tighter)")),
            "rangemode": "tozero",
            "zeroline": False,
        },
        yaxis={
            "title": axis_heading(_("Uniformity (lower: vectors spread out)")),
            "rangemode": "tozero",
            "zeroline": False,
        },
        annotations=[note(_("↖ all vectors equal"), 0, 0, "top", {"size": 11, "color": QUIET}, xref="x", yref="y")],
    )
    return {"data": traces, "layout": layout}
