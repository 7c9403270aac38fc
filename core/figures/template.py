"""One look for all figures. Text and grid colours come from the page's theme, in the browser."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

import numpy as np

Figure = dict[str, Any]

ACCENT = "#2f6f9f"
QUIET = "#8a97a3"

# Colour-blind-safe on white and on near-black (Okabe & Ito 2008, without its black and yellow), then two of Tol's.
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
    """The layout that every figure starts from."""
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
    """The title of an axis, clear of its numbers."""
    return {"text": text, "standoff": 8, "font": {"size": 12}}


def panel_title(text: str, x: float, y: float) -> Figure:
    """The annotation above a panel's upper left corner; the text is safe to draw already."""
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": x,
        "y": y,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12},
    }


def plain_text(text: str) -> str:
    """Text from outside, safe and legible in a Plotly hover: escaped, wrapped, cut after HOVER_LINES lines."""
    lines = textwrap.wrap(" ".join(text.split()), HOVER_WIDTH, max_lines=HOVER_LINES, placeholder=" …")
    return "<br>".join(_escaped(line) for line in lines)


def short_text(text: str, width: int = 24) -> str:
    """A name from outside, safe in a legend."""
    text = " ".join(text.split())
    if len(text) <= width:
        return _escaped(text)
    cut = textwrap.shorten(text, width, placeholder=" …")
    # One long word leaves nothing but the placeholder.
    return _escaped(cut if cut != "…" else f"{text[: width - 2]} …")


def letters_wide(text: str) -> int:
    """How many letters' room a text takes; Han, kana and Hangul take that of two."""
    return len(text) + sum(east_asian_width(char) in "WF" for char in text)


def _escaped(text: str) -> str:
    """For Plotly, whose figures know quotation marks by number alone."""
    return html.escape(text).replace("&quot;", "&#34;")


def rounded(values: Sequence[float | None]) -> list[float | None]:
    """Five significant digits: more than a screen shows, and less to send."""
    return [None if value is None or not np.isfinite(value) else float(f"{value:.5g}") for value in values]


def thinned(count: int, most: int = MAX_CURVE_POINTS) -> list[int]:
    """Evenly spread indices of at most `most` of `count` points, first and last among them."""
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.unique(np.linspace(0, count - 1, most).round())]
