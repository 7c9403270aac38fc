"""Shared style of all figures. The page's theme sets the colours of text and grid in the browser."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

import numpy as np

Figure = dict[str, Any]

ACCENT = "#2f6f9f"
QUIET = "#8a97a3"

# Colour-blind-safe on white and near-black: Okabe & Ito 2008 without black and yellow, then two colours of Tol's.
CLASS_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#aa4499", "#999933")
# Eight colours and seven symbols: the first 56 classes differ in at least one.
CLASS_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "triangle-down")

HOVER_WIDTH = 60
HOVER_LINES = 6
MAX_CURVE_POINTS = 800


def class_colour(label: int) -> str:
    return CLASS_COLOURS[label % len(CLASS_COLOURS)]


def class_symbol(label: int) -> str:
    return CLASS_SYMBOLS[label % len(CLASS_SYMBOLS)]


def base_layout(**more: Any) -> Figure:
    """Return the base layout of every figure, updated with `more`."""
    layout: Figure = {
        "autosize": True,
        "margin": {"l": 56, "r": 16, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 13},
        "hoverlabel": {"align": "left"},
        "uirevision": "constant",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
    }
    return layout | more


def axis_heading(text: str) -> Figure:
    """Return an axis title with space between it and the tick labels."""
    return {"text": text, "standoff": 8, "font": {"size": 12}}


def note(text: str, x: float, y: float, yanchor: str, font: Mapping[str, Any], **more: Any) -> Figure:
    """Return an annotation whose left end is at (x, y), as fractions of the figure; `more` may name axes instead.

    Args:
        text: escaped markup.
    """
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": yanchor}
    return {"text": text, "showarrow": False, "font": dict(font), **place, **more}


def upright(at: float, line: Mapping[str, Any], xref: str = "x", yref: str = "paper") -> Figure:
    """Return a vertical line at an x value, over the full height of `yref`."""
    return {"type": "line", "xref": xref, "yref": yref, "x0": at, "x1": at, "y0": 0, "y1": 1, "line": dict(line)}


def curve(
    x: Sequence[float],
    y: Sequence[float | None],
    line: Mapping[str, Any],
    axes: Mapping[str, str],
    *,
    mode: str = "lines",
    **more: Any,
) -> Figure:
    """Return a trace through points, with a gap where y is None.

    Args:
        line: line style; axes: axis names from `axes_of`; more: further keys of the trace.
    """
    return {"type": "scatter", "mode": mode, "x": list(x), "y": rounded(y), "line": dict(line), **axes, **more}


def band(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, axes: Mapping[str, str], **more: Any
) -> Figure:
    """Return the filled area between two lines over the same x values."""
    outline = {"x": [*x, *x[::-1]], "y": rounded([*high, *low[::-1]]), "line": {"width": 0}}
    look = {"type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": colour, "hoverinfo": "skip"}
    return look | outline | {**axes, **more}


def row_axis(labels: Sequence[str]) -> Figure:
    """Return the y axis of a chart with a row for each label, the first at the top."""
    return {
        "range": [len(labels) - 0.5, -0.5],
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "automargin": True,
        "ticklabelstandoff": 4,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def row_bars(x: Sequence[Any], name: str, marker: Mapping[str, Any], hovers: Sequence[str]) -> Figure:
    """Return a bar in each row of a chart with `row_axis`. Args: hovers: escaped markup, one per bar."""
    bars = {"type": "bar", "orientation": "h", "name": name, "x": list(x), "y": list(range(len(x)))}
    return bars | {"marker": marker, "hovertext": hovers, "hovertemplate": "%{hovertext}<extra></extra>"}


def plain_text(text: str) -> str:
    """Return untrusted text for a Plotly hover: escaped, wrapped, cut after HOVER_LINES lines."""
    lines = textwrap.wrap(" ".join(text.split()), HOVER_WIDTH, max_lines=HOVER_LINES, placeholder=" …")
    return "<br>".join(_escaped(line) for line in lines)


def short_text(text: str, width: int = 24) -> str:
    """Return an untrusted name for a legend: one line, cut to `width` and escaped."""
    text = " ".join(text.split())
    if len(text) <= width:
        return _escaped(text)
    cut = textwrap.shorten(text, width, placeholder=" …")
    # For one long word, `shorten` returns only the placeholder.
    return _escaped(cut if cut != "…" else f"{text[: width - 2]} …")


def letters_wide(text: str) -> int:
    """Return the width of a text in letters. Han, kana and Hangul count as two."""
    return len(text) + sum(east_asian_width(char) in "WF" for char in text)


def _escaped(text: str) -> str:
    """Escape text for Plotly, which decodes quotation marks only as numeric entities."""
    return html.escape(text).replace("&quot;", "&#34;")


def rounded(values: Sequence[float | None]) -> list[float | None]:
    """Round to five significant digits, which is more than a screen shows, to send less data."""
    return [None if value is None or not np.isfinite(value) else float(f"{value:.5g}") for value in values]


def thin_indices(count: int, most: int = MAX_CURVE_POINTS) -> list[int]:
    """Return evenly spaced indices of at most `most` of `count` points, including the first and last."""
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.unique(np.linspace(0, count - 1, most).round())]
