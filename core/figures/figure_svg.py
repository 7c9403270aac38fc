"""Render a figure of stacked panels as SVG, for pages without Plotly.

Lines, markers, bands and labels match `curves_figure`; hover content is left out.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.figures.template import Figure, letters_wide

DASHES = {"dash": "6 4", "dot": "1.5 3", "dashdot": "7 3 1.5 3", "longdash": "10 4"}
PADDING = 0.05
TICKS = 4
MARKER_PX = 2.6
# Smaller numbers are written as powers of ten; otherwise 0.0001 would appear on an axis next to 5 × 10⁻⁵.
SMALL = 0.001
# A title too long for its figure is scaled down, at most to LEAST_SIZE. Titles are bold, so letters are wider.
LEAST_SIZE, TITLE_WIDTH = 0.75, 1.3
# Estimated width of a letter, as in `line_ends`. The hint beside a title is dropped if both do not fit.
LETTER_PX = 5.8
BESIDE = re.compile(r"<span> .*</span>")
TAG = re.compile(r"<[^>]*>")
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
COLOUR = re.compile(r"#[0-9a-f]{3,8}|rgba?\([\d., ]+\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Axis:
    """A scale from values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float
    log: bool = False
    form: str = ""

    def at(self, value: float | None) -> float | None:
        if value is None or not math.isfinite(value) or (self.log and value <= 0):
            return None
        place = math.log10(value) if self.log else value
        share = (place - self.low) / (self.high - self.low)
        return self.start_px + share * (self.end_px - self.start_px)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            values = [10.0**power for power in powers]
            return values if len(values) > 1 else [10**self.low, 10**self.high]
        return tick_values(self.low, self.high, (self.high - self.low) / TICKS)

    def text(self, value: float) -> str:
        if "%" in self.form:
            return f"{100 * value:.3g}%".replace("-", "−")
        shown = f"{value:.2e}" if 0 < abs(value) < SMALL else f"{value:.3g}"
        number, power, exponent = shown.partition("e")
        if power:
            shown = f"{float(number):g} × 10{str(int(exponent)).translate(SUPERSCRIPT)}"
        return shown.replace("-", "−")


def figure_svg(figure: Figure, *, width: int, height: int, about: str) -> str:
    """Return an SVG element in the current text colour, safe to embed in a page.

    Attributes locate the x axis (`data-x0`, `data-x1`: values; `data-left`, `data-right`: pixels). A script may move
    the hidden line of class "cursor" along this axis.
    """
    layout, margin = figure["layout"], figure["layout"]["margin"]
    left, right = float(margin["l"]), float(width - margin["r"])
    top, bottom = float(margin["t"]), float(height - margin["b"])
    low, high = (float(end) for end in layout["xaxis"]["range"])
    x = _Axis(low, high if high > low else low + 1, left, right)
    numbers = sorted({trace["yaxis"] for trace in figure["data"]})
    ys = {}
    for name in numbers:
        axis = layout[f"yaxis{name[1:]}"]
        start, end = (bottom - share * (bottom - top) for share in axis["domain"])
        form = str(axis.get("tickformat", ""))
        ys[name] = _Axis(*_span(name, figure), start, end, axis.get("type") == "log", form)
    parts = [_grid(x, y) for y in ys.values()]
    parts += [
        _words(f"{tick:g}", place, bottom + 16, "middle", 11) for tick in x.ticks() if (place := x.at(tick)) is not None
    ]
    title = html.escape(str(layout["xaxis"]["title"]["text"]))
    parts.append(_words(title, (left + right) / 2, bottom + 32, "middle", 12))
    parts += [_shape(shape, x, ys) for shape in layout.get("shapes", ())]
    parts += [drawn for trace in figure["data"] for drawn in _trace(trace, x, ys[trace["yaxis"]])]
    parts += [_annotation(note, x, ys, width, top, bottom) for note in layout.get("annotations", ())]
    parts.append(
        f'<line class="cursor" x1="{left}" x2="{left}" y1="{top}" y2="{bottom}" stroke="currentColor" '
        'stroke-opacity="0.5" visibility="hidden"/>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" role="img" '
        f'aria-label="{html.escape(about)}" fill="currentColor" '
        f'data-x0="{x.low:g}" data-x1="{x.high:g}" data-left="{left:g}" data-right="{right:g}">{"".join(parts)}</svg>'
    )


def with_shared_ranges(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures with shared axis ranges, for comparison side by side."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        spans.setdefault("xaxis", []).append(figure["layout"]["xaxis"]["range"])
        for name in {trace["yaxis"] for trace in figure["data"]}:
            spans.setdefault(f"yaxis{name[1:]}", []).append(_span(name, figure))
    ranges = {axis: [min(low for low, _ in ends), max(high for _, high in ends)] for axis, ends in spans.items()}
    found = []
    for figure in figures:
        layout = figure["layout"]
        shared = {axis: layout[axis] | {"range": ends} for axis, ends in ranges.items() if axis in layout}
        found.append(figure | {"layout": layout | shared})
    return found


def _span(name: str, figure: Figure) -> tuple[float, float]:
    """Return the lowest and highest value of an axis, as exponents of ten if it is logarithmic."""
    axis = figure["layout"][f"yaxis{name[1:]}"]
    if "range" in axis:
        return float(axis["range"][0]), float(axis["range"][1])
    drawn = [value for trace in figure["data"] if trace["yaxis"] == name for value in trace["y"]]
    places = [float(value) for value in drawn if value is not None and math.isfinite(value)]
    if axis.get("type") == "log":
        places = [math.log10(value) for value in places if value > 0]
    low, high = min(places, default=0.0), max(places, default=1.0)
    from_zero = axis.get("rangemode") == "tozero"
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    room = PADDING * (high - low) or (abs(high) or 1.0) * PADDING
    return low if from_zero and low == 0 else low - room, high + room


def text_element(x: float, y: float, inner: str, look: str) -> str:
    """Return a text element. Args: inner: escaped markup; look: further attributes."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{inner}</text>'


def line_element(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    """Return a line element. Args: look: further attributes."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {look}/>'


def tick_values(low: float, high: float, apart: float) -> list[float]:
    """Return round numbers in a range, at least `apart` units apart: multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(apart)) if apart > 0 else 1.0
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= apart * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _grid(x: _Axis, y: _Axis) -> str:
    """Return the grid lines and tick labels of a panel's y axis."""
    places = [(tick, place) for tick in y.ticks() if (place := y.at(tick)) is not None]
    return "".join(
        line_element(x.start_px, place, x.end_px, place, 'stroke="currentColor" stroke-opacity="0.13"')
        + _words(y.text(tick), x.start_px - 7, place + 4, "end", 11)
        for tick, place in places
    )


def _trace(trace: Figure, x: _Axis, y: _Axis) -> Iterator[str]:
    line = trace.get("line", {})
    colour = _colour(line.get("color") or trace.get("marker", {}).get("color"))
    pixels = [(x.at(one), y.at(other)) for one, other in zip(trace["x"], trace["y"], strict=True)]
    runs = [list(stretch) for is_gap, stretch in groupby(pixels, lambda place: None in place) if not is_gap]
    opacity = f' opacity="{float(trace["opacity"]):g}"' if "opacity" in trace else ""
    for places in runs:
        points = " ".join(f"{one:.1f},{other:.1f}" for one, other in places)
        if trace.get("fill"):
            yield f'<polygon points="{points}" fill="{_colour(trace.get("fillcolor"))}"{opacity}/>'
        elif "lines" in trace["mode"] and len(places) > 1:
            dash = DASHES.get(str(line.get("dash", "solid")))
            yield (
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{line.get("width", 1.5)}" '
                f'stroke-linejoin="round"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}{opacity}/>'
            )
        if "markers" in trace["mode"] or (len(places) == 1 and not trace.get("fill")):
            for one, other in places:
                yield f'<circle cx="{one:.1f}" cy="{other:.1f}" r="{MARKER_PX}" fill="{colour}"{opacity}/>'


def _shape(shape: Figure, x: _Axis, ys: dict[str, _Axis]) -> str:
    """Return a vertical line through a panel."""
    y, place = ys.get(str(shape["yref"]).removesuffix(" domain")), x.at(shape["x0"])
    if y is None or place is None:
        return ""
    line = shape["line"]
    dash = DASHES.get(str(line.get("dash", "solid")), "")
    look = f'stroke="{_colour(line["color"])}" stroke-width="{line["width"]}" stroke-dasharray="{dash}"'
    return line_element(place, y.start_px, place, y.end_px, look)


def _annotation(note: Figure, x: _Axis, ys: dict[str, _Axis], width: int, top: float, bottom: float) -> str:
    left, right = x.start_px, x.end_px
    across = left + float(note["x"]) * (right - left) if note["xref"] == "paper" else x.at(note["x"])
    down: float | None = bottom - float(note["y"]) * (bottom - top)
    if note["yref"] != "paper":
        axis = ys[note["yref"]]
        # On a logarithmic axis, Plotly positions annotations by exponent of ten.
        down = axis.at(10 ** float(note["y"]) if axis.log else note["y"])
    if across is None or down is None:
        return ""
    label, size = str(note["text"]), float(note["font"]["size"])
    across += float(note.get("xshift", 0))
    down += {"middle": 0.35 * size, "top": size, "bottom": -5.0}[note["yanchor"]] - float(note.get("yshift", 0))
    if note["xref"] == "paper" and float(note["x"]) == 0:  # a title
        label = BESIDE.sub("", label) if _wide(label) > right - left else label
        size *= min(1.0, max(LEAST_SIZE, (width - left) / (TITLE_WIDTH * _wide(label))))
    return _words(_spans(label), across, down, "start", size)


def _wide(label: str) -> float:
    return LETTER_PX * letters_wide(TAG.sub("", label))


def _spans(label: str) -> str:
    """Convert the tags used in figure labels to SVG tspans; escape everything else."""
    found: list[str] = []
    looks = [""]
    for place, piece in enumerate(re.split(f"({TAG.pattern})", label)):
        if place % 2 == 0:
            found += [f"<tspan{looks[-1]}>{html.escape(html.unescape(piece))}</tspan>"] if piece else []
        elif piece.startswith("</"):
            looks = looks[:-1] or [""]
        else:
            colour = COLOUR.search(piece)
            plain = f' fill="{colour.group()}"' if colour else ' fill-opacity="0.65"'
            looks.append(' font-weight="600"' if piece == "<b>" else plain)
    return "".join(found)


def _words(inner: str, x: float, y: float, anchor: str, size: float) -> str:
    return text_element(x, y, inner, f'text-anchor="{anchor}" font-size="{size:g}" xml:space="preserve"')


def _colour(text: object) -> str:
    """Return a colour if it has a known format, otherwise the current text colour."""
    return text if isinstance(text, str) and COLOUR.fullmatch(text) else "currentColor"
