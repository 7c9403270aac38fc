"""The curves of the loss lab, without data. The browser adds values as the points move."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

from core.figures.panels import axis_title, stack_panels, value_at_step
from core.figures.template import CLASS_COLOURS, QUIET, Figure, axis_heading, base_layout, curve
from core.messages import N_, _

# One per setting; the classes of the lab use other colours.
COLOURS = (CLASS_COLOURS[6], CLASS_COLOURS[7])
GAP = 0.11


class _Curve(NamedTuple):
    field: str
    panel: int
    name: str
    dash: str = "solid"
    quiet: bool = False


PANELS = (
    N_("Loss, nats"),
    N_("Gradient norm"),
    N_("Alignment, lower is tighter"),
    N_("Uniformity, lower is more spread out"),
)
CURVES = (
    _Curve("loss", 0, N_("loss")),
    _Curve("contrast", 0, N_("its contrastive part"), "dashdot"),
    _Curve("collapse", 0, N_("collapse line"), "dash", quiet=True),
    _Curve("bound", 0, N_("lower bound"), "dot", quiet=True),
    _Curve("norm", 1, N_("gradient norm")),
    _Curve("alignment", 2, N_("alignment")),
    _Curve("uniformity", 3, N_("uniformity")),
)


def lab_figure(settings: int, *, measured: bool, height: int) -> Figure:
    """Return stacked panels over the steps, with empty traces.

    Args:
        settings: number of settings side by side, 1 or 2.
        measured: include alignment and uniformity, which the simplex does not have.
        height: pixels.
    Returns: a figure; the `meta` of a trace holds the number of its setting and the field to draw.
    """
    titles = PANELS if measured else PANELS[:2]
    places = stack_panels(range(1, len(titles) + 1), GAP)
    layout = base_layout(
        showlegend=False,
        margin={"l": 52, "r": 10, "t": 22, "b": 42},
        height=height,
        xaxis={
            "title": axis_heading(axis_title("step")),
            "tickformat": ",d",
            "nticks": 6,
            "zeroline": False,
            "anchor": places[-1].axes["yaxis"],
        },
        annotations=[place.title(_(title)) for place, title in zip(places, titles, strict=True)],
    )
    for number, place in enumerate(places):
        # Plotly draws powers of ten a quarter larger than other tick labels.
        scale = {"type": "log", "dtick": 1, "tickfont": {"size": 9.6}} if number == 1 else {"nticks": 4}
        layout |= place.layout({"zeroline": False, "exponentformat": "power", **scale})
    traces = []
    for setting, one in product(range(settings), CURVES):
        if one.panel < len(titles):
            name = _("{name}, {detail}", name=_(one.name), detail="AB"[setting]) if settings > 1 else _(one.name)
            colour = QUIET if one.quiet and settings == 1 else COLOURS[setting]
            line = {"color": colour, "width": 1.2 if one.quiet else 1.8, "dash": one.dash}
            more: dict[str, Any] = {
                "name": name,
                "hovertemplate": f"{value_at_step(name, '.4g')}<extra></extra>",
                "meta": {"panel": setting, "field": one.field, "place": one.panel},
            }
            traces.append(curve((), (), line, places[one.panel].axes, **more))
    return {"data": traces, "layout": layout}
