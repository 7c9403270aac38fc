"""What a run's model said of one text, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from core.figures.axes import axis_title, value_at_step
from core.figures.template import (
    QUIET,
    Figure,
    axis_heading,
    base_layout,
    class_colour,
    class_symbol,
    curve,
    short_text,
    upright,
)
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS

DASHES = ("solid", "dash", "dot", "dashdot")


def confidence_figure(
    steps: Sequence[int],
    probabilities: ArrayLike,
    classes: Sequence[str],
    exact: Sequence[bool],
    shown: int,
    *,
    revision: str,
) -> Figure:
    """The probability of each class over the steps.

    Args:
        probabilities: [F, C].
        exact: of each step, whether it was computed; else it was estimated and is drawn open.
        shown: the step that is looked at, marked by a line.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    traces = []
    for label, name in enumerate(classes):
        line = {"color": class_colour(label), "width": 1.5, "dash": DASHES[label // 8 % len(DASHES)]}
        symbols = [class_symbol(label) + ("" if known else "-open") for known in exact]
        more = {
            "name": short_text(name),
            "marker": {"color": class_colour(label), "size": 7, "symbol": symbols},
            "hovertext": short_text(name),  # a name in the template could be taken for one
            "hovertemplate": f"{value_at_step('%{hovertext}', PERCENT_FORMAT)}<extra></extra>",
        }
        traces.append(curve(steps, values[:, label].tolist(), line, {}, mode="lines+markers", **more))
    layout = base_layout(
        uirevision=revision,
        margin={"l": 48, "r": 12, "t": 8, "b": 42},
        xaxis={"title": axis_heading(axis_title("step")), "rangemode": "tozero"},
        yaxis={"range": [-0.03, 1.03], "tickformat": PERCENT_TICKS},
        shapes=[upright(shown, {"color": QUIET, "width": 1})],
    )
    return {"data": traces, "layout": layout}
