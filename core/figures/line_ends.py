"""Labels at the ends of lines, instead of a legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.template import Figure, letters_wide, note

SIZE, LINE_PX, CHAR_PX, GAP_PX = 11, 13.0, 5.8, 6
MARGIN_PX = (24, 150)
# Padding that Plotly adds above and below the values of an axis with an automatic range.
PADDING = 0.055
# Samples of the dash pattern, so that a label does not depend on colour alone.
SAMPLES = {"solid": "━", "dash": "╌", "dot": "┈", "dashdot": "·−", "longdash": "––", "longdashdot": "–·"}


def line_ends(traces: Sequence[Figure], axes: Mapping[str, Any], plot_px: float) -> list[Figure]:
    """Return an annotation after the last point of every trace with a label in `meta`.

    Labels that would overlap are moved apart by a pixel offset, so that they follow their lines on zoom.

    Args:
        axes: "yaxis", "yaxis2" … of the layout, each with its domain.
        plot_px: total height of all panels.
    """
    found = []
    for axis in dict.fromkeys(trace["yaxis"] for trace in traces):
        on_axis = [trace for trace in traces if trace["yaxis"] == axis]
        about = axes[f"yaxis{axis[1:]}"]
        scale = math.log10 if about.get("type") == "log" else float
        last = [(trace, known[-1]) for trace in on_axis if trace.get("meta") and (known := _known(trace))]
        named = [(trace, scale(end)) for trace, end in last if scale is float or end > 0]
        if not named:
            continue
        values = [scale(value) for trace in on_axis for value in _known(trace) if scale is float or value > 0]
        room = PADDING * (max(values) - min(values)) or 1.0
        low, high = about.get("range") or (min(values) - room, max(values) + room)
        panel_px = (about["domain"][1] - about["domain"][0]) * plot_px
        wanted = [(end - low) / (high - low) * panel_px for _, end in named]
        for (trace, end), there, moved in zip(named, wanted, spread(wanted, LINE_PX, 0.0, panel_px), strict=True):
            line, shift = trace["line"], round(moved - there, 1)
            sample = f'<span style="color:{line["color"]}">{SAMPLES[line.get("dash", "solid")]}</span>'
            text = f"{sample} {trace['meta']}"
            found.append(note(text, 1, end, "middle", {"size": SIZE}, yref=axis, xshift=GAP_PX, yshift=shift))
    return found


def margin_px(traces: Sequence[Figure]) -> int:
    """Return the right margin that the longest label needs."""
    longest = max((letters_wide(trace["meta"]) for trace in traces if trace.get("meta")), default=0)
    return round(min(MARGIN_PX[1], MARGIN_PX[0] + CHAR_PX * longest)) if longest else 12


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions at least `gap` apart within [low, high] (closer if they do not fit), in the order of `wanted`.

    Neighbours that are too close move as one group around the mean of their wanted positions, which minimises the total
    squared displacement.
    """
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    # With the gaps subtracted, "ascend by at least `gap`" becomes "never descend": isotonic regression.
    groups: list[list[float]] = []
    for place, i in enumerate(order):
        groups.append([wanted[i] - place * gap])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            last = groups.pop()
            groups[-1].extend(last)
    level = [float(np.mean(group)) for group in groups for _ in group]
    highest = high - (len(wanted) - 1) * gap
    placed = [min(max(value, low), highest) + place * gap for place, value in enumerate(level)]
    return [placed[order.index(i)] for i in range(len(wanted))]


def _known(trace: Figure) -> list[float]:
    return [value for value in trace["y"] if value is not None]
