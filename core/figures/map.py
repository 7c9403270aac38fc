"""The map: one point per probe example, coloured and shaped by its class."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.events import Probe
from core.figures.template import Figure, base_layout, class_colour, class_symbol, plain_text, short_text
from core.representation.projections import Points

MARGIN = 1.08
# Beyond this many points SVG gets slow and WebGL draws them.
SVG_POINTS = 800


def hover_texts(probe: Probe) -> list[str]:
    """What a point says of itself, safe to draw: its class, whether it was trained on, and its text."""
    return [
        f"<b>{short_text(probe.classes[label])}</b>{' · training' * (row >= probe.held_out)}<br>{plain_text(text)}"
        for row, (label, text) in enumerate(zip(probe.labels, probe.texts, strict=True))
    ]


def map_extent(frames: Sequence[Points]) -> float:
    """Half the width of a square that holds every frame, so that the axes hold still too."""
    return MARGIN * max((float(np.abs(points).max()) for points in frames if points.size), default=1.0)


def map_figure(points: Points, probe: Probe, hovers: Sequence[str], extent: float, *, revision: str) -> Figure:
    """One frame of a run; training rows are drawn open.

    Args:
        points: [N, 2].
        hovers: N texts from `hover_texts`.
        extent: from `map_extent`.
        revision: same revision, same zoom and selection; it changes with the run.
    """
    labels = np.asarray(probe.labels)
    train = frozenset(range(probe.held_out, len(probe.ids)))
    kind = "scatter" if len(points) <= SVG_POINTS else "scattergl"
    # Four digits of the map's width: a collapsed map is small, and its points still move.
    decimals = 4 - math.floor(math.log10(extent)) if extent > 0 else 4
    traces = []
    for label, name in enumerate(probe.classes):
        rows = np.flatnonzero(labels == label).tolist()
        traces.append(
            {
                "type": kind,
                "mode": "markers",
                "name": short_text(name),
                "x": points[rows, 0].astype(float).round(decimals).tolist(),
                "y": points[rows, 1].astype(float).round(decimals).tolist(),
                "customdata": [probe.ids[row] for row in rows],
                "hovertext": [hovers[row] for row in rows],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "marker": {
                    "color": class_colour(label),
                    "symbol": [class_symbol(label) + ("-open" if row in train else "") for row in rows],
                    "size": 9 if len(points) <= 400 else 6,
                    "opacity": 0.85,
                    "line": {"width": 0},
                },
                "unselected": {"marker": {"opacity": 0.15}},
            }
        )
    axis = {
        "range": [-extent, extent],
        "constrain": "domain",
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "showline": True,
        "mirror": True,
        "ticks": "",
    }
    layout = base_layout(
        xaxis=axis,
        yaxis=axis | {"scaleanchor": "x", "constraintoward": "top"},
        margin={"l": 4, "r": 4, "t": 8, "b": 4},
        dragmode="pan",
        hovermode="closest",
        uirevision=revision,
        selectionrevision=revision,
    )
    return {"data": traces, "layout": layout}
