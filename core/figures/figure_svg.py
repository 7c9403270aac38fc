"""One of our figures of stacked panels as an SVG, for pages that carry no Plotly: lines, markers, bands and labels.

It draws what `curves_figure` says, in the same places; what is only for hovering is left out.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from core.figures.template import Figure, letters_wide

DASHES = {"dash": "6 4", "dot": "1.5 3", "dashdot": "7 3 1.5 3", "longdash": "10 4"}
PADDING = 0.05
TICKS = 4
MARKER_PX = 2.6
# A number below it is written as a power of ten: on an axis 0.0001 would be beside 5 × 10⁻⁵.
SMALL = 0.001
# A title that is too long for its figure becomes smaller, but not too small to be read; it is bolder than other words.
LEAST_SIZE, TITLE_WIDTH = 0.75, 1.3
# Of a letter, as the browser's side of a figure takes it; what is beside a title goes where there is no room for it.
LETTER_PX = 5.8
BESIDE = re.compile(r"<span> .*</span>")
TAG = re.compile(r"<[^>]*>")
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
COLOUR = re.compile(r"#[0-9a-f]{3,8}|rgba?\([\d., ]+\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float
    log: bool = False
    form: str = ""

    def at(self, value: float) -> float | None:
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        place = math.log10(value) if self.log else value
        share = (place - self.low) / (self.high - self.low)
        return self.start_px + share * (self.end_px - self.start_px)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            values = [10.0**power for power in powers]
            return values if len(values) > 1 else [10**self.low, 10**self.high]
        step = _nice((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def text(self, value: float) -> str:
        if "%" in self.form:
            return f"{100 * value:.3g}%".replace("-", "−")
        shown = f"{value:.2e}" if 0 < abs(value) < SMALL else f"{value:.3g}"
        number, power, exponent = shown.partition("e")
        if power:
            shown = f"{float(number):g} × 10{str(int(exponent)).translate(SUPERSCRIPT)}"
        return shown.replace("-", "−")


def figure_svg(figure: Figure, *, width: int, height: int, about: str) -> str:
    """An SVG element in the colour of the text around it, safe to put into a page.

    It says where its x axis is (`data-x0`, `data-x1`: values; `data-left`, `data-right`: pixels) and has a line of
    class "cursor", hidden, that a script may move along it.
    """
    layout, margin = figure["layout"], figure["layout"]["margin"]
    left, right = float(margin["l"]), float(width - margin["r"])
    top, bottom = float(margin["t"]), float(height - margin["b"])
    low, high = (float(end) for end in layout["xaxis"]["range"])
    x = _Axis(low, high if high > low else low + 1, left, right)
    numbers = sorted({trace["yaxis"] for trace in figure["data"]})
    ys = {name: _y_axis(name, figure, top, bottom) for name in numbers}
    parts = [_grid(x, y, bottom) for y in ys.values()]
    parts += [_x_tick(x, tick, bottom) for tick in x.ticks()]
    parts.append(_words(str(layout["xaxis"]["title"]["text"]), (left + right) / 2, bottom + 32, "middle", 12))
    parts += [_shape(shape, x, ys) for shape in layout.get("shapes", ())]
    parts += [drawn for trace in figure["data"] for drawn in _trace(trace, x, ys[trace["yaxis"]])]
    parts += [_annotation(note, x, ys, (left, right, top, bottom), width) for note in layout.get("annotations", ())]
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
    """The same figures, to be compared side by side: an axis that several have spans what it spans in any of them."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        spans.setdefault("xaxis", []).append(figure["layout"]["xaxis"]["range"])
        for name in {trace["yaxis"] for trace in figure["data"]}:
            spans.setdefault(f"yaxis{name[1:]}", []).append(_span(name, figure))
    ranges = {axis: [min(low for low, _ in ends), max(high for _, high in ends)] for axis, ends in spans.items()}
    return [
        figure
        | {
            "layout": figure["layout"]
            | {
                axis: figure["layout"][axis] | {"range": ends}
                for axis, ends in ranges.items()
                if axis in figure["layout"]
            }
        }
        for figure in figures
    ]


def _y_axis(name: str, figure: Figure, top: float, bottom: float) -> _Axis:
    said = figure["layout"][f"yaxis{name[1:]}"]
    start, end = (bottom - share * (bottom - top) for share in said["domain"])
    return _Axis(*_span(name, figure), start, end, said.get("type") == "log", str(said.get("tickformat", "")))


def _span(name: str, figure: Figure) -> tuple[float, float]:
    """Lowest and highest value of an axis, powers of ten where it is logarithmic."""
    said = figure["layout"][f"yaxis{name[1:]}"]
    log = said.get("type") == "log"
    values = [
        float(value)
        for trace in figure["data"]
        if trace["yaxis"] == name
        for value in trace["y"]
        if value is not None and math.isfinite(value) and not (log and value <= 0)
    ]
    if "range" in said:
        low, high = (float(end) for end in said["range"])
        return low, high
    places = [math.log10(value) for value in values] if log else values
    low, high = min(places, default=0.0), max(places, default=1.0)
    if said.get("rangemode") == "tozero":
        low, high = min(0.0, low), max(0.0, high)
    room = PADDING * (high - low) or (abs(high) or 1.0) * PADDING
    return low if said.get("rangemode") == "tozero" and low == 0 else low - room, high + room


def _nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next(times * power for times in (1, 2, 5, 10) if times * power >= step * (1 - 1e-9))


def _grid(x: _Axis, y: _Axis, bottom: float) -> str:
    parts = []
    for tick in y.ticks():
        place = y.at(tick)
        if place is None:
            continue
        parts.append(_segment(x.start_px, place, x.end_px, place, 'stroke="currentColor" stroke-opacity="0.13"'))
        parts.append(_words(y.text(tick), x.start_px - 7, place + 4, "end", 11))
    return "".join(parts)


def _x_tick(x: _Axis, tick: float, bottom: float) -> str:
    place = x.at(tick)
    return "" if place is None else _words(f"{tick:g}", place, bottom + 16, "middle", 11)


def _trace(trace: Figure, x: _Axis, y: _Axis) -> Iterator[str]:
    line = trace.get("line", {})
    colour = _colour(line.get("color") or trace.get("marker", {}).get("color"))
    runs = list(_stretches(trace["x"], trace["y"], x, y))
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


def _stretches(xs: Iterable[Any], ys: Iterable[Any], x: _Axis, y: _Axis) -> Iterator[list[tuple[float, float]]]:
    """Places between gaps."""
    found: list[tuple[float, float]] = []
    for one, other in zip(xs, ys, strict=True):
        place = None if one is None or other is None else (x.at(float(one)), y.at(float(other)))
        if place is None or place[0] is None or place[1] is None:
            if found:
                yield found
            found = []
        else:
            found.append((place[0], place[1]))
    if found:
        yield found


def _shape(shape: Figure, x: _Axis, ys: dict[str, _Axis]) -> str:
    """An upright line through a panel."""
    y = ys.get(str(shape["yref"]).removesuffix(" domain"))
    place = x.at(float(shape["x0"]))
    if y is None or place is None:
        return ""
    line = shape.get("line", {})
    dash = DASHES.get(str(line.get("dash", "solid")), "")
    look = f'stroke="{_colour(line.get("color"))}" stroke-width="{line.get("width", 1)}" stroke-dasharray="{dash}"'
    return _segment(place, y.start_px, place, y.end_px, look)


def _annotation(
    note: Figure, x: _Axis, ys: dict[str, _Axis], box: tuple[float, float, float, float], width: int
) -> str:
    left, right, top, bottom = box
    size = float(note.get("font", {}).get("size", 11))
    across = left + float(note["x"]) * (right - left) if note["xref"] == "paper" else x.at(float(note["x"]))
    if note["yref"] == "paper":
        down: float | None = bottom - float(note["y"]) * (bottom - top)
    else:
        axis = ys.get(str(note["yref"]).removesuffix(" domain"))
        if axis is None:
            return ""
        # On a logarithmic axis Plotly takes the place of an annotation as a power of ten.
        value = 10 ** float(note["y"]) if axis.log and not str(note["yref"]).endswith("domain") else float(note["y"])
        down = axis.at(value)
        if str(note["yref"]).endswith("domain"):
            down = axis.start_px + float(note["y"]) * (axis.end_px - axis.start_px)
    if across is None or down is None:
        return ""
    shift = {"middle": 0.35 * size, "top": size, "bottom": -5.0}[note.get("yanchor", "middle")]
    anchor = {"left": "start", "center": "middle", "right": "end"}[note.get("xanchor", "left")]
    across += float(note.get("xshift", 0))
    down += shift - float(note.get("yshift", 0))
    text = str(note["text"])
    if anchor == "start" and note["xref"] == "paper" and float(note["x"]) == 0:
        text = BESIDE.sub("", text) if _wide(text) > right - left else text
        size *= min(1.0, max(LEAST_SIZE, (width - left) / (TITLE_WIDTH * _wide(text))))
    return _words(_Spans.of(text), across, down, anchor, size, safe=True)


def _wide(text: str) -> float:
    return LETTER_PX * letters_wide(TAG.sub("", text))


class _Spans(HTMLParser):
    """The few tags of a figure's labels as parts of an SVG text; everything else is text."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.looks: list[str] = []

    @classmethod
    def of(cls, text: str) -> str:
        parser = cls()
        parser.feed(text)
        parser.close()
        return "".join(parser.parts)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        found = COLOUR.search(dict(attrs).get("style") or "")
        look = ' font-weight="600"' if tag == "b" else f' fill="{found.group()}"' if found else ' fill-opacity="0.65"'
        self.looks.append(look)

    def handle_endtag(self, tag: str) -> None:
        if self.looks:
            self.looks.pop()

    def handle_data(self, data: str) -> None:
        self.parts.append(f"<tspan{''.join(self.looks[-1:])}>{html.escape(data)}</tspan>")


def _words(text: str, x: float, y: float, anchor: str, size: float, *, safe: bool = False) -> str:
    inner = text if safe else html.escape(text)
    look = f'text-anchor="{anchor}" font-size="{size:g}" xml:space="preserve"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{inner}</text>'


def _segment(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {look}/>'


def _colour(text: object) -> str:
    """A colour as our figures write it; the text's own for anything else."""
    return text if isinstance(text, str) and COLOUR.fullmatch(text) else "currentColor"
