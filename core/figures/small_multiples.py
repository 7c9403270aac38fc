"""Representation measures over frames, in panels and in the plane, and the effect of the temperature on the push."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from core.catalogue.loss_entry import PushSpread
from core.figures.panels import grid
from core.figures.run_curves import DASHES, LEGEND_WIDTH
from core.figures.template import (
    ACCENT,
    QUIET,
    Figure,
    axis_heading,
    base_layout,
    class_colour,
    curve,
    note,
    short_text,
)
from core.messages import _, pgettext
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS

MEASURE_COLUMNS, MEASURE_GAPS = 3, (0.09, 0.16)
SPREAD_COLUMNS, SPREAD_GAPS = 2, (0.12, 0.12)
ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}
ROW_PX = 170
PLANE_PX = 380
# Measures of a frame by name, by the step of the frame, in order.
Path = Mapping[int, Mapping[str, float | None]]


class _Panel(NamedTuple):
    """One small chart; its traces have no axes yet. `is_share` is True if the values are fractions."""

    title: str
    traces: Sequence[Figure]
    is_share: bool = False


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
    """Draw representation measures over the frames of a run.

    Args:
        steps: F steps, one per frame.
        values: by measure, F values, None where undefined; a measure with only None is left out.
        names: by measure, its label and the better direction ("higher", "lower" or "neither"), shown as an arrow.
        shown: step of the displayed frame, marked by a line.
        axis: name of the x axis, such as "step", in the user's language.
        shares: measures formatted as percentages.
    """
    panels = []
    for name in (name for name in values if any(value is not None for value in values[name])):
        label, form = _(names[name][0]), PERCENT_FORMAT if name in shares else ".4g"
        hover = f"{label} %{{y:{form}}}, {axis} %{{x}}<extra></extra>"
        more: dict[str, Any] = {"mode": "lines+markers", "name": label, "marker": {"size": 4}, "hovertemplate": hover}
        trace = curve(steps, values[name], {"color": ACCENT, "width": 1.8}, {}, **more)
        panels.append(_Panel(f"{label}{ARROWS[names[name][1]]}", [trace], name in shares))
    layout = base_layout(
        uirevision=revision,
        showlegend=False,
        margin={"l": 48, "r": 12, "t": 28, "b": 42},
        height=max(1, -(-len(panels) // MEASURE_COLUMNS)) * ROW_PX + 60,
    )
    marks = [(shown, {"color": QUIET, "width": 1})]
    axes = ({"nticks": 5, "zeroline": False}, {"nticks": 4, "zeroline": False})
    return _figure(panels, layout, marks, axis, axes, MEASURE_COLUMNS, MEASURE_GAPS)


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
        symbols, sizes = ["circle"] * last + ["arrow"], [4] * last + [13]
        marker = {"angleref": "previous", "color": colour, "symbol": symbols, "size": sizes}
        hover = _("step {step}: alignment {x}, uniformity {y}", step="%{text}", x="%{x:.3f}", y="%{y:.3f}")
        more: dict[str, Any] = {"name": short_text(name, LEGEND_WIDTH), "hovertemplate": hover, "mode": "lines+markers"}
        more |= {"marker": marker, "text": [f"{step:,}" for step in steps]}
        traces.append(curve(x, y, {"color": colour, "width": 1.8, "dash": DASHES[number]}, {}, **more))
    axis = {"rangemode": "tozero", "zeroline": False}
    layout = base_layout(
        uirevision=revision,
        height=PLANE_PX,
        showlegend=len(paths) > 1,
        margin={"l": 60, "r": 12, "t": 36, "b": 44},
        xaxis=axis | {"title": axis_heading(_("Alignment (lower: classes are tighter)"))},
        yaxis=axis | {"title": axis_heading(_("Uniformity (lower: vectors spread out)"))},
        annotations=[note(_("↖ all vectors equal"), 0, 0, "top", {"size": 11, "color": QUIET}, xref="x", yref="y")],
    )
    return {"data": traces, "layout": layout}


def spread_figure(
    temperatures: Sequence[float],
    spreads: Sequence[PushSpread],
    losses: Sequence[str],
    chosen: float,
    own: float,
    *,
    revision: str,
) -> Figure:
    """Draw the spread of the push over the negatives of a batch: four panels over τ on a logarithmic axis.

    Args:
        temperatures: T ascending values, each with its spread.
        losses: names of the losses in each spread; the first is drawn solid, the second dashed.
        chosen: the selected temperature, marked by a solid line; own: that of the run, dotted.
    """

    def line(name: str, values: Sequence[float], dash: str = "solid", form: str = ".3g") -> Figure:
        hover = _("{name} {value} at τ {tau}", name=name, value=f"%{{y:{form}}}", tau="%{x:.3g}")
        more = {"name": name, "hovertemplate": f"{hover}<extra></extra>"}
        return curve(x, values, {"color": ACCENT, "width": 2, "dash": dash}, {}, **more)

    x = [float(f"{temperature:.5g}") for temperature in temperatures]
    by_loss = [[spread.losses[place] for spread in spreads] for place in range(len(losses))]
    title = (
        _("{loss}, dashed {other}, nats", loss=losses[0], other=losses[1])
        if len(losses) > 1
        else _("{loss}, nats", loss=losses[0])
    )
    top = line(pgettext("part of a whole", "share"), [spread.top_share for spread in spreads], form=PERCENT_FORMAT)
    panels = [
        _Panel(title, [line(*one) for one in zip(losses, by_loss, ("solid", "dash"), strict=False)]),
        _Panel(_("Entropy of p, nats"), [line(_("entropy"), [spread.entropy for spread in spreads])]),
        _Panel(
            _("Effective negatives"),
            [line(_("effective negatives"), [spread.effective_negatives for spread in spreads])],
        ),
        _Panel(_("Share of push, strongest 5%"), [top], is_share=True),
    ]
    layout = base_layout(
        uirevision=revision, showlegend=False, margin={"l": 44, "r": 12, "t": 24, "b": 42}, hovermode="x"
    )
    marks = [(at, {"color": QUIET, "width": 1.2, "dash": dash}) for at, dash in ((own, "dot"), (chosen, "solid"))]
    axes = ({"type": "log", "tickvals": [0.01, 0.03, 0.1, 0.3, 1]}, {"rangemode": "tozero", "nticks": 5})
    return _figure(panels, layout, marks, "τ", axes, SPREAD_COLUMNS, SPREAD_GAPS)


def _figure(
    panels: Sequence[_Panel],
    layout: Figure,
    marks: Sequence[tuple[float, dict[str, Any]]],
    heading: str,
    axes: tuple[Figure, Figure],
    columns: int,
    gaps: tuple[float, float],
) -> Figure:
    """Arrange panels in a grid. Args: marks: vertical lines; heading: title of the lowest x axes; axes: x, y."""
    traces: list[Figure] = []
    layout |= {"shapes": [], "annotations": []}
    for number, (panel, place) in enumerate(zip(panels, grid(len(panels), columns, gaps), strict=True)):
        title = axis_heading(heading) if number + columns >= len(panels) else None
        ticks = {"tickformat": PERCENT_TICKS} if panel.is_share else {}
        layout |= place.layout(axes[1] | ticks, axes[0] | {"title": title})
        layout["shapes"] += [place.upright(at, line) for at, line in marks]
        layout["annotations"].append(place.title(panel.title))
        traces += [trace | place.axes for trace in panel.traces]
    return {"data": traces, "layout": layout}
