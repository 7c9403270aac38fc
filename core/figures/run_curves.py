"""Curves of several runs in one chart: one colour and dash per run, with raw values faint behind smoothed ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import ConfigError
from core.figures.panels import axes_of, axis_name, stack_panels
from core.figures.smoothing import RAW, Smoothing, smoothed
from core.figures.template import (
    QUIET,
    Figure,
    axis_heading,
    band,
    base_layout,
    class_colour,
    curve,
    note,
    short_text,
    thin_indices,
)
from core.messages import Message, _
from core.quantities import PERCENT_FORMAT, PERCENT_TICKS

MOST_RUNS = 6
# Every run has its own dash as well as its colour, so that no line depends on colour alone.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
GAP = 0.07
FAINT = 0.25
BAND_OPACITY = 0.15
LEGEND_WIDTH = 36
BRANCH_LINE = {"color": QUIET, "width": 1.2, "dash": "dot"}


@dataclass(frozen=True, slots=True)
class Curve:
    """One measure of one run, or its mean over seeds.

    Attributes:
        x: positions on the axis, ascending.
        y: one value per position; None leaves a gap.
        std: one standard deviation per position, drawn as a band of mean ± one deviation; None for a single run.
    """

    x: Sequence[float]
    y: Sequence[float | None]
    std: Sequence[float | None] | None = None


@dataclass(frozen=True, slots=True)
class MeasurePanel:
    """One measure of several runs.

    Attributes:
        curves: one per run; None for a run without this measure.
        log: use a logarithmic axis, unless a band reaches 0.
        percent: whether the values are fractions, shown as percentages.
        smooth: whether smoothing applies. It would flatten a measure with few values, such as one per frame.
    """

    title: str
    curves: Sequence[Curve | None]
    log: bool = False
    percent: bool = False
    smooth: bool = True


def compare_figure(
    panels: Sequence[MeasurePanel],
    names: Sequence[str],
    *,
    axis: str,
    smoothing: Smoothing = RAW,
    branch_at: float | None = None,
    revision: str,
) -> Figure:
    """Draw measures of 1 to 6 runs, stacked over one axis.

    Args:
        names: one per run; untrusted text.
        axis: title of the x axis.
        smoothing: applied to curves of single runs; a mean over seeds is drawn unsmoothed.
        branch_at: position at which branches leave their parent, marked by a line; None for other runs.
        revision: Plotly keeps the zoom as long as this is unchanged.
    Raises: ConfigError for more than six runs, or an invalid amount of smoothing.
    """
    if len(names) > MOST_RUNS:
        raise ConfigError(
            "runs", Message("{count} run", "{count} runs", count=len(names)), "choose at most {most}.", most=MOST_RUNS
        )
    traces: list[Figure] = []
    in_legend: set[int] = set()
    places = stack_panels(range(1, len(panels) + 1), GAP)
    lowest = axis_name("y", max(1, len(panels)))
    axes: Figure = {"xaxis": {"title": axis_heading(axis), "anchor": lowest, "zeroline": False}}
    for number, (panel, at) in enumerate(zip(panels, places, strict=True), start=1):
        hover = f"%{{y:{PERCENT_FORMAT}}}" if panel.percent else "%{y:.4g}"
        edges = (edge for one in panel.curves if one is not None for part in _stretches(one) for edge in part)
        log = panel.log and not any(low <= 0 for _x, low, _high in edges)
        y: Figure = {"zeroline": False, "nticks": 5, "automargin": False}
        y |= {"type": "log", "exponentformat": "power", "minor": {"showgrid": False}} if log else {}
        axes |= at.layout(y | {"tickformat": PERCENT_TICKS} if panel.percent else y)
        for run, (label, one) in enumerate(zip(names, panel.curves, strict=True)):
            if one is None or not _count(one.y):
                continue
            name = short_text(label, LEGEND_WIDTH)
            smooth = one.std is None and panel.smooth and smoothing.kind != "none"
            traces += _bands(one, run, number)
            if smooth:
                faint = {"opacity": FAINT, "hoverinfo": "skip", "showlegend": False}
                faint |= {"line": {"color": class_colour(run), "width": 1}}
                traces.append(_line(one.x, one.y, run, name, number) | faint)
            more = {"hovertemplate": hover, "showlegend": run not in in_legend}
            values = smoothed(one.y, smoothing, log=log) if smooth else one.y
            traces.append(_line(one.x, values, run, name, number) | more)
            in_legend.add(run)
    titles = [place.title(short_text(panel.title, 60)) for panel, place in zip(panels, places, strict=True)]
    marks = [] if branch_at is None or not panels else [branch_at]
    font = {"size": 11, "color": QUIET}
    layout = base_layout(
        uirevision=revision,
        hovermode="x unified",
        dragmode="zoom",
        shapes=[place.upright(at, BRANCH_LINE) for at in marks for place in places],
        margin={"l": 60, "r": 12, "t": 52, "b": 40},
        legend={"orientation": "h", "x": 0, "y": 1.03, "yanchor": "bottom", "font": {"size": 12}},
        annotations=[*titles, *(note(_("branch"), at, 0, "bottom", font, xref="x") for at in marks)],
        **axes,
    )
    return {"data": traces, "layout": layout}


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Compute the mean and sample standard deviation (n − 1) over seeds, at positions where all have a value.

    Positions in steps or fractions of the run coincide across runs. Positions in seconds do not, so a mean over time is
    empty or sparse. A single run has no deviation.
    """
    found = [{x: y for x, y in zip(curve.x, curve.y, strict=True) if y is not None} for curve in curves]
    common = [x for x in curves[0].x if all(x in one for one in found)]
    values = np.array([[one[x] for x in common] for one in found], np.float64).reshape(len(curves), len(common))
    if len(curves) == 1:
        return Curve(common, values[0].tolist())
    return Curve(common, values.mean(0).tolist(), values.std(0, ddof=1).tolist())


def _line(x: Sequence[float], y: Sequence[float | None], run: int, name: str, panel: int) -> Figure:
    kept = thin_indices(len(x))
    places, values = rounded_places([x[i] for i in kept]), [y[i] for i in kept]
    mode, colour = "lines" if _count(y) > 1 else "markers", class_colour(run)
    more = {"name": name, "marker": {"color": colour}, "legendgroup": f"run {run}"}
    return curve(places, values, {"color": colour, "width": 2, "dash": DASHES[run]}, axes_of(panel), mode=mode, **more)


def _count(values: Iterable[float | None]) -> int:
    return sum(value is not None and math.isfinite(value) for value in values)


def rounded_places(places: Sequence[float]) -> list[float]:
    """Round positions to seven significant digits, so that step numbers stay exact into the millions."""
    return [float(f"{place:.7g}") for place in places]


def _bands(one: Curve, run: int, panel: int) -> list[Figure]:
    """Return bands of mean ± one standard deviation, one shape for each stretch without a gap."""
    red, green, blue = (int(class_colour(run)[i : i + 2], 16) for i in (1, 3, 5))
    colour, more = f"rgba({red},{green},{blue},{BAND_OPACITY})", {"legendgroup": f"run {run}", "showlegend": False}
    edges = (tuple(zip(*stretch, strict=True)) for stretch in _stretches(one))
    return [band(rounded_places(x), low, high, colour, axes_of(panel), **more) for x, low, high in edges]


def _stretches(one: Curve) -> list[list[tuple[float, float, float]]]:
    """Return positions with their lower and upper edges, split where a mean or deviation is missing; thinned."""
    stretches: list[list[tuple[float, float, float]]] = [[]]
    deviations = one.std or ()
    for i in thin_indices(len(deviations)):
        mean, spread = one.y[i], deviations[i]
        if mean is None or spread is None or not math.isfinite(mean + spread):
            stretches.append([])
        else:
            stretches[-1].append((one.x[i], mean - spread, mean + spread))
    return [stretch for stretch in stretches if len(stretch) > 1]
