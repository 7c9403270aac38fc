"""Draw scores per seed and differences with their intervals as one SVG, for pages and reports."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from core.figures.figure_svg import line_element, text_element, tick_values
from core.figures.template import ACCENT as PLAIN_ACCENT
from core.figures.template import QUIET, short_text
from core.messages import N_, _

ROW_PX, TOP_PX, BOTTOM_PX = 30, 26, 34
LABEL_PX, PANEL_PX, GAP_PX = 270, 290, 36
LABEL_CHARS = 40
# Labels are illegible below this width; the container scrolls instead.
LEAST_PX = 620
# Approximate number of ticks on an axis.
TICKS = 5
# Pages define the theme's accent; reports use the fallback.
ACCENT = f"var(--st-primary-color, {PLAIN_ACCENT})"
WORSE = "#d06a1c"
PROBE, MAJORITY = N_("linear probe of the encoder before training"), N_("majority class")
ABOUT = N_("{score} of {count} cells")
ABOUT_COMPARED = N_("{score} of {count} cells, and their differences with 95% intervals")


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One cell: its scores, and its difference if it is compared.

    Attributes:
        label: untrusted text.
        scores: one per seed.
        difference, low, high: the difference and its interval; None if missing.
        shown: whether the table's verdict is a difference; worse: whether the difference is for the worse.
        probe: accuracy of the linear probe, a reference for the scores.
        majority: accuracy of the majority class; drawn only within the range of the axis.
    """

    label: str
    scores: tuple[float, ...]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    shown: bool = False
    worse: bool = False
    probe: float | None = None
    majority: float | None = None


def interval_chart(rows: Sequence[IntervalRow], *, score: str, unit: str, percent: bool) -> str:
    """Draw a dot for each seed and a line at the mean; to the right, differences with their intervals.

    Grey strokes mark the references: long dashes for the linear probe, dashes and dots for the majority class.

    Args:
        score: name of the score; unit: of the differences; both in the user's language.
        percent: scores are fractions, shown as percentages; differences are shown as percentage points.
    Returns: an SVG element in the current text colour, safe to embed in a page; "" for no scores.
    """
    times = 100.0 if percent else 1.0
    scores = [times * value for row in rows for value in row.scores]
    if not scores:
        return ""
    ends = [times * end for row in rows for end in (row.difference, row.low, row.high) if end is not None]
    probes = [times * row.probe for row in rows if row.probe is not None]
    panels = [_Panel(LABEL_PX, *_padded([*scores, *probes]), _("{score}, %", score=score) if percent else score)]
    if ends:
        left = LABEL_PX + PANEL_PX + GAP_PX
        panels.append(_Panel(left, *_padded([0.0, *ends]), _("Difference, {unit}", unit=unit)))
    width = panels[-1].left + PANEL_PX + 12
    height = TOP_PX + ROW_PX * len(rows) + BOTTOM_PX
    parts = [_frame(panel, len(rows)) for panel in panels]
    if ends:
        parts.append(_line(panels[1].at(0.0), TOP_PX, panels[1].at(0.0), height - BOTTOM_PX, QUIET, 1.2))
    for place, row in enumerate(rows):
        parts += _row(row, TOP_PX + ROW_PX * (place + 0.5), panels, times)
    about = html.escape(_(ABOUT_COMPARED if ends else ABOUT, score=score, count=len(rows)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" '
        f'style="max-width:{width}px;min-width:{min(LEAST_PX, width)}px" role="img" aria-label="{about}" '
        'font-size="12" fill="currentColor">'
        f"{''.join(parts)}</svg>"
    )


@dataclass(frozen=True, slots=True)
class _Panel:
    left: float
    low: float
    high: float
    title: str

    def at(self, value: float) -> float:
        return self.left + PANEL_PX * (value - self.low) / (self.high - self.low)


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.05
    return low - room, high + room


def _frame(panel: _Panel, rows: int) -> str:
    bottom = TOP_PX + ROW_PX * rows
    parts = [_text(panel.left, TOP_PX - 10, html.escape(panel.title), weight="600")]
    for value in tick_values(panel.low, panel.high, (panel.high - panel.low) / TICKS):
        x = panel.at(value)
        parts.append(_line(x, TOP_PX, x, bottom, "currentColor", 0.6, opacity=0.15))
        parts.append(_text(x, bottom + 18, f"{value:.10g}".replace("-", "−"), anchor="middle"))
    return "".join(parts)


def _row(row: IntervalRow, y: float, panels: Sequence[_Panel], times: float) -> list[str]:
    label = _text(LABEL_PX - 14, y + 4, short_text(row.label, LABEL_CHARS), anchor="end")
    parts = [f"<g><title>{html.escape(row.label)}</title>{label}</g>"]
    scores = panels[0]
    references = ((PROBE, row.probe, "7 3"), (MAJORITY, row.majority, "5 2 1 2"))
    for name, reference, dashes in references:
        if reference is not None and scores.low <= times * reference <= scores.high:
            x = scores.at(times * reference)
            # Use the full height of a row, so that equal references of adjacent rows join.
            parts.append(
                f'<path d="M{x:.1f} {y - ROW_PX / 2:.1f}V{y + ROW_PX / 2:.1f}" stroke="{QUIET}" stroke-width="1.2" '
                f'stroke-dasharray="{dashes}"><title>{html.escape(_(name))}</title></path>'
            )
    for value in row.scores:
        x = scores.at(times * value)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{ACCENT}" fill-opacity="0.45"/>')
    if row.scores:
        mean = scores.at(times * sum(row.scores) / len(row.scores))
        parts.append(_line(mean, y - 9, mean, y + 9, ACCENT, 2.4))
    if row.difference is None:
        return parts
    colour = WORSE if row.worse else ACCENT
    at = panels[1].at
    if row.low is not None and row.high is not None:
        parts.append(_line(at(times * row.low), y, at(times * row.high), y, colour, 1.8))
    filled = colour if row.shown else "none"
    x = at(times * row.difference)
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{filled}" stroke="{colour}" stroke-width="1.8"/>')
    return parts


def _line(x0: float, y0: float, x1: float, y1: float, colour: str, width: float, opacity: float = 1.0) -> str:
    return line_element(x0, y0, x1, y1, f'stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}"')


def _text(x: float, y: float, inner: str, anchor: str = "start", weight: str = "400") -> str:
    return text_element(x, y, inner, f'text-anchor="{anchor}" font-weight="{weight}"')
