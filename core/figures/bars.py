"""Bar charts: rows per class, text lengths and similarity scores."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from core.figures.template import (
    ACCENT,
    QUIET,
    Figure,
    axis_heading,
    base_layout,
    letters_wide,
    plain_text,
    row_axis,
    row_bars,
    short_text,
)
from core.messages import _, ngettext
from core.quantities import percent

CLASS_HEIGHT_PX = 24
SHORTEST_PX = 120
# Space for the legend above and the axis below.
EDGES_PX = 84
HISTOGRAM_HEIGHT_PX = 260
LABEL_CHARS = 24
# Shades of ACCENT distinguish splits, because hues mean classes elsewhere.
TONES = ("rgba(47,111,159,1)", "rgba(47,111,159,0.65)", "rgba(47,111,159,0.4)")

BINS = 40
BAR_SHARE = 0.94
# Texts beyond this percentile share an overflow bar if the longest text is much longer.
SHOWN_PERCENTILE = 99.0
TAIL_RATIO = 1.5
SCORE_BINS = 20
MOST_SCORE = 1e6


def class_balance_figure(classes: Sequence[str], counts: Mapping[str, Sequence[int]]) -> Figure:
    """Draw a horizontal bar for each class, in the given order, with its row count at the end.

    The height grows with the number of classes, so the page must scroll.

    Args:
        classes: C class names; untrusted text.
        counts: row counts [C] by the display name of the split; several splits are stacked.
    """
    places = list(range(len(classes)))
    # Han, kana and Hangul letters are twice as wide.
    wide = [letters_wide(name[:LABEL_CHARS]) - len(name[:LABEL_CHARS]) for name in classes]
    labels = [short_text(name, LABEL_CHARS - more // 2) for name, more in zip(classes, wide, strict=True)]
    totals = [sum(of_class) for of_class in zip(*counts.values(), strict=True)] if counts else [0] * len(classes)
    most = max(totals, default=0) or 1
    traces = []
    for tone, (split, of_split) in zip(cycle(TONES), counts.items(), strict=False):
        rows, hovers, shown = sum(of_split), [], short_text(split)
        for of_class, count in zip(classes, of_split, strict=True):
            hover = _(
                "{split}: {count} of {total} rows, {share}",
                split=shown,
                count=f"{count:,}",
                total=f"{rows:,}",
                share=percent(count / max(1, rows)),
            )
            hovers.append(f"<b>{plain_text(of_class)}</b><br>{hover}")
        traces.append(row_bars([int(count) for count in of_split], shown, {"color": tone}, hovers))
    traces.append(
        {
            "type": "scatter",
            "mode": "text",
            "x": totals,
            "y": places,
            "text": [f" {total:,}" for total in totals],
            "textposition": "middle right",
            "hoverinfo": "skip",
            "showlegend": False,
            "cliponaxis": False,
        }
    )
    layout = base_layout(
        barmode="stack",
        bargap=0.25,
        height=max(SHORTEST_PX, EDGES_PX + CLASS_HEIGHT_PX * len(classes)),
        showlegend=len(counts) > 1,
        legend=base_layout()["legend"] | {"traceorder": "normal"},
        hovermode="closest",
        dragmode=False,
        # Space for the numbers at the ends of the bars.
        margin={"l": 8, "r": 56, "t": 32 if len(counts) > 1 else 8, "b": 40},
        xaxis={
            "title": axis_heading(_("rows")),
            "range": [0, most],
            "tickangle": 0,
            "zeroline": False,
        }
        | _whole_ticks(0, most, 4)
        | {"tickformat": "~s"},  # 150k rather than 150,000, which does not fit a narrow screen
        yaxis=row_axis(labels),
    )
    return {"data": traces, "layout": layout}


def _whole_ticks(low: float, high: float, most: int) -> Figure:
    """Return tick settings that label only whole numbers."""
    return {"tickformat": ",d"} | ({"dtick": 1} if high - low <= most else {"nticks": most + 1})


def histogram_figure(lengths: Sequence[int], unit: str) -> Figure:
    """Draw a histogram of text lengths.

    Bars have equal integer widths. If a few texts are much longer than the others, they share an overflow bar, labelled
    with its first length, so that they do not compress the rest.

    Args:
        lengths: integers ≥ 0; an empty sequence gives an empty figure.
        unit: the unit of a length, in the plural and in the user's language, e.g. "tokens".
    """
    unit = html.escape(" ".join(unit.split()))
    low, high, most = -0.5, 0.5, 1
    traces: list[Figure] = []
    ticks: Figure = {}
    if len(lengths):
        given = np.asarray(lengths, dtype=np.int64)
        first, longest = int(given.min()), int(given.max())
        # "lower" excludes the longest length even if there are few.
        last = int(np.percentile(given, SHOWN_PERCENTILE, method="lower"))
        if longest < first + BINS or longest <= first + TAIL_RATIO * (last - first):
            last = longest
        width = _width(last - first + 1)
        starts = list(range(first // width * width, last + 1, width))
        end = starts[-1] + width
        low, high = starts[0] - 0.5, end - 0.5
        middles = [start + (width - 1) / 2 for start in starts]
        spans = [f"{start:,}" if width == 1 else f"{start:,}–{start + width - 1:,}" for start in starts]
        colours, edges = [ACCENT] * len(starts), [*starts, end]
        if longest >= end:
            # A gap of half a bar shows that the overflow bar is off the scale.
            tail, high = end - 0.5 + width, end - 0.5 + 1.5 * width
            middles.append(tail)
            spans.append(_("{low} to {high}", low=f"{end:,}", high=f"{longest:,}"))
            colours.append(QUIET)
            edges.append(longest + 1)
            # About six round lengths, with space for the label of the overflow bar.
            between = _width(math.ceil((high - low) * BINS / 7))
            rounds = range(-(-starts[0] // between) * between, end, between)
            apart = [tick for tick in rounds if tail - tick > 0.1 * (high - low)]
            labels = [*(f"{tick:,}" for tick in apart), f"≥ {end:,}"]
            ticks = {"tickmode": "array", "tickvals": [*apart, tail], "ticktext": labels}
        counts = np.histogram(given, bins=edges)[0].tolist()
        most, hovers = max(counts), []
        for span, count in zip(spans, counts, strict=True):
            total, share = len(lengths), percent(count / len(lengths))
            hover = _("{count} of {total} texts, {share}", count=f"{count:,}", total=f"{total:,}", share=share)
            hovers.append(f"{span} {unit}<br>{hover}")
        traces = [_upright_bars(middles, counts, [BAR_SHARE * width] * len(middles), colours, hovers)]
    layout = base_layout(
        height=HISTOGRAM_HEIGHT_PX,
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        margin={"l": 56, "r": 16, "t": 8, "b": 40},
        xaxis={"title": axis_heading(unit), "range": [low, high], "tickangle": 0, "zeroline": False, "showgrid": False}
        | _whole_ticks(low, high, 7)
        | ticks,
        yaxis={"title": axis_heading(_("texts")), "rangemode": "tozero", "zeroline": False} | _whole_ticks(0, most, 5),
    )
    return {"data": traces, "layout": layout}


def _width(span: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, … that covers the span in at most BINS bars."""
    widths = (times * 10**power for power in range(19) for times in (1, 2, 5))  # lengths are int64
    return next(width for width in widths if span <= BINS * width)


def _upright_bars(x: list[float], y: list[int], width: Any, colour: Any, hovers: list[str]) -> Figure:
    bars = {"type": "bar", "x": x, "y": y, "width": width, "marker": {"color": colour}}
    return bars | {"hovertext": hovers, "hovertemplate": "%{hovertext}<extra></extra>"}


def score_figure(scores: Sequence[float]) -> Figure:
    """Draw a histogram of the similarity scores of pairs, in bins of equal width over their range.

    Args:
        scores: finite; clipped to ±1,000,000.
    """
    values = np.clip(np.asarray(scores, dtype=np.float64), -MOST_SCORE, MOST_SCORE)
    counts, edges = np.histogram(values, bins=min(SCORE_BINS, max(1, len(set(values.tolist())))))
    centres = (edges[:-1] + edges[1:]) / 2
    hovers = []
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        pairs = ngettext("{count} pair", "{count} pairs", int(count))
        hovers.append(_("{low:.3g} to {high:.3g}: {pairs}", low=low, high=high, pairs=pairs))
    width = float((edges[1] - edges[0]) * BAR_SHARE)
    layout = base_layout(
        height=HISTOGRAM_HEIGHT_PX,
        showlegend=False,
        xaxis={"title": axis_heading(_("score"))},
        yaxis={"title": axis_heading(_("pairs"))},
    )
    return {
        "data": [_upright_bars(centres.round(6).tolist(), counts.tolist(), width, ACCENT, hovers)],
        "layout": layout,
    }
