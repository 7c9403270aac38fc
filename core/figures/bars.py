"""Bar charts: rows per class, text lengths and similarity scores."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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
# A mark that would extend the axis to more than this multiple of its length is drawn at the edge instead.
SCORE_BINS = 20
MOST_SCORE = 1e6


Lengths = npt.NDArray[np.int64]


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
    traces = [_split_trace(split, of_split, classes, number) for number, (split, of_split) in enumerate(counts.items())]
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


def _split_trace(split: str, counts: Sequence[int], classes: Sequence[str], number: int) -> Figure:
    rows = sum(counts)
    name = short_text(split)
    hovers = []
    for of_class, count in zip(classes, counts, strict=True):
        hover = _(
            "{split}: {count} of {total} rows, {share}",
            split=name,
            count=f"{count:,}",
            total=f"{rows:,}",
            share=percent(count / max(1, rows)),
        )
        hovers.append(f"<b>{plain_text(of_class)}</b><br>{hover}")
    return row_bars([int(count) for count in counts], name, {"color": TONES[number % len(TONES)]}, hovers)


def _whole_ticks(low: float, high: float, most: int) -> Figure:
    """Return tick settings that label only whole numbers."""
    return {"tickformat": ",d"} | ({"dtick": 1} if high - low <= most else {"nticks": most + 1})


class _Bins(NamedTuple):
    """Histogram bins over integer lengths: bin n holds lengths from starts[n] to starts[n] + width − 1.

    `counts` has one more entry than `starts` if the longest lengths share an overflow bar.
    """

    starts: list[int]
    width: int
    counts: list[int]

    @property
    def end(self) -> int:
        """The first length beyond the bars of equal width."""
        return self.starts[-1] + self.width

    @property
    def has_tail(self) -> bool:
        return len(self.counts) > len(self.starts)

    @property
    def tail_place(self) -> float:
        """Centre of the overflow bar. A gap of half a bar shows that it is off the scale."""
        return self.end - 0.5 + self.width

    @property
    def low(self) -> float:
        return self.starts[0] - 0.5

    @property
    def high(self) -> float:
        return self.tail_place + self.width / 2 if self.has_tail else self.end - 0.5


def histogram_figure(lengths: Sequence[int], unit: str) -> Figure:
    """Draw a histogram of text lengths.

    Bars have equal integer widths. If a few texts are much longer than the others, they share an overflow bar, labelled
    with its first length, so that they do not compress the rest.

    Args:
        lengths: integers ≥ 0; an empty sequence gives an empty figure.
        unit: the unit of a length, in the plural and in the user's language, e.g. "tokens".
    """
    given = np.asarray(lengths, dtype=np.int64)
    bins = _binned(given) if given.size else None
    shown = html.escape(" ".join(unit.split()))
    low, high = (bins.low, bins.high) if bins else (-0.5, 0.5)
    layout = base_layout(
        height=HISTOGRAM_HEIGHT_PX,
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        margin={"l": 56, "r": 16, "t": 8, "b": 40},
        xaxis={"title": axis_heading(shown), "range": [low, high], "tickangle": 0, "zeroline": False, "showgrid": False}
        | _whole_ticks(low, high, 7)
        | _tail_ticks(bins),
        yaxis={"title": axis_heading(_("texts")), "rangemode": "tozero", "zeroline": False}
        | _whole_ticks(0, max(bins.counts) if bins else 1, 5),
    )
    return {"data": [_histogram_trace(bins, given, shown)] if bins else [], "layout": layout}


def _binned(lengths: Lengths) -> _Bins:
    low, longest = int(lengths.min()), int(lengths.max())
    # "lower" excludes the longest length even if there are few.
    last = int(np.percentile(lengths, SHOWN_PERCENTILE, method="lower"))
    if longest < low + BINS or longest <= low + TAIL_RATIO * (last - low):
        last = longest
    width = _width(last - low + 1)
    first = low // width * width
    starts = list(range(first, last + 1, width))
    edges = [*starts, starts[-1] + width]
    has_tail = longest >= edges[-1]
    counts = np.histogram(lengths, bins=[*edges, longest + 1] if has_tail else edges)[0]
    return _Bins(starts, width, counts.tolist())


def _width(span: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, … that covers the span in at most BINS bars."""
    width, steps = 1, (2, 5, 10)
    while span > BINS * width:
        power = 10 ** (len(str(width)) - 1)
        width = next(step * power for step in steps if step * power > width)
    return width


def _tail_ticks(bins: _Bins | None) -> Figure:
    """Return ticks: the first length of the overflow bar, and about six round lengths for the others."""
    if bins is None or not bins.has_tail:
        return {}
    span = bins.high - bins.low
    between = _width(math.ceil(span * BINS / 7))
    ticks = range(-(-bins.starts[0] // between) * between, bins.end, between)
    apart = [tick for tick in ticks if bins.tail_place - tick > 0.1 * span]  # space for the label
    return {
        "tickmode": "array",
        "tickvals": [*apart, bins.tail_place],
        "ticktext": [*(f"{tick:,}" for tick in apart), f"≥ {bins.end:,}"],
    }


def _histogram_trace(bins: _Bins, lengths: Lengths, unit: str) -> Figure:
    texts = lengths.size
    middles = [start + (bins.width - 1) / 2 for start in bins.starts]
    spans = [f"{start:,}" if bins.width == 1 else f"{start:,}–{start + bins.width - 1:,}" for start in bins.starts]
    if bins.has_tail:
        middles.append(bins.tail_place)
        spans.append(_("{low} to {high}", low=f"{bins.end:,}", high=f"{lengths.max():,}"))
    hovers = []
    for span, count in zip(spans, bins.counts, strict=True):
        share = percent(count / texts)
        hover = _("{count} of {total} texts, {share}", count=f"{count:,}", total=f"{texts:,}", share=share)
        hovers.append(f"{span} {unit}<br>{hover}")
    colours = [ACCENT] * len(bins.starts) + [QUIET] * bins.has_tail
    return _upright_bars(middles, bins.counts, [BAR_SHARE * bins.width] * len(middles), colours, hovers)


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
