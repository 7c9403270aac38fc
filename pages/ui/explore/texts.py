"""The selected examples: as a table that can be read, as a file, and as a short text in the address."""

from __future__ import annotations

import base64
import binascii
import html
import math
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import streamlit as st

from core.artifacts.example_table import example_records, example_table_csv
from core.events import Probe
from core.figures.template import class_colour
from core.messages import N_, _
from core.quantities import percent
from core.representation.examples import ExampleScores
from core.representation.neighbours import Honesty
from core.representation.projections import MapSpec, Points
from core.tasks.listing import csv_file
from pages.ui.address import Explore
from pages.ui.bound import bound_switch
from pages.ui.explore.run_reads import Frames
from pages.ui.parts import probe_label

Cell = str | float | bool | None

MAX_ROWS = 200
# What a column of numbers takes, and the space around any; names share the rest.
NUMBER_REM, PADDING_REM = 3.4, 1.4
TEXT_CHARS, NAME_CHARS = 600, 80
EXAMPLES = N_("Examples")
# How numbers of a column are written, where it is not three decimals.
FORMS: Mapping[str, Callable[[float], str]] = {
    # Translators: columns of texts: shares of neighbours that two lists have in common, and that stayed.
    **dict.fromkeys((N_("Confidence"), N_("Overlap"), N_("Kept"), N_("Accuracy")), percent),
    EXAMPLES: "{:,.0f}".format,
}
WIDE = N_("Text")
HARDEST = 8
TRUST_HELP = N_(
    "For each point: trustworthiness falls the farther away its neighbours on the map really are; overlap is the share "
    "of its neighbours on the map that are neighbours in the original space."
)
# Longer lists of ranges are written as bits instead.
LONGEST_LIST = 300
BITS = "~"
RANGE, SEPARATOR = "-", "."


def text_table(
    columns: Mapping[str, Sequence[Cell]], *, height: int = 460, classes: Sequence[str] = (), label: str = EXAMPLES
) -> None:
    """Draw columns of equal length; each text is below its other cells, over the whole width.

    Args:
        columns: by name, in English and marked, as it is translated here; True is a dot, False and None are empty.
        height: pixels, above which the table scrolls.
        classes: names that get their colour in front, as on the map.
        label: what the table is, for those who cannot see it; marked in the same way.
    """
    names = [name for name in columns if name != WIDE]
    worded = max(1, sum(_kind(columns[name]) == "words" for name in names))
    rest = NUMBER_REM * (len(names) - worded) + PADDING_REM * (len(names) + 1)
    count = len(next(iter(columns.values()), ()))
    head = "".join(f'<th class="{_kind(columns[name])}" scope="col">{html.escape(_(name))}</th>' for name in names)
    colours = {name: class_colour(label) for label, name in enumerate(classes)}
    rows = "".join(
        f"<tbody><tr>{''.join(_cell(name, columns[name][row], colours) for name in names)}<td></td></tr>"
        f"{_text(columns[WIDE][row], len(names) + 1) if WIDE in columns else ''}</tbody>"
        for row in range(min(count, MAX_ROWS))
    )
    st.html(
        f'<div class="text-table" style="max-height:{height}px;--word-room:calc((100cqw - {rest:.1f}rem) / {worded})" '
        f'tabindex="0" role="region" aria-label="{html.escape(_(label))}">'
        f'<table><thead><tr>{head}<td class="rest"></td></tr></thead>{rows}</table></div>'
    )
    if count > MAX_ROWS:
        shown, every = f"{MAX_ROWS:,}", f"{count:,}"
        st.caption(_("The first {shown} of {every} are shown; the file has them all.", shown=shown, every=every))


def _kind(values: Sequence[Cell]) -> str:
    if any(isinstance(value, bool) for value in values):
        return "mark"
    return "number" if any(isinstance(value, float) for value in values) else "words"


def _text(value: Cell, width: int) -> str:
    text = " ".join(str(value)[: 2 * TEXT_CHARS].split())
    text = text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS]} …"
    return f'<tr><td class="wide" colspan="{width}" dir="auto">{html.escape(text)}</td></tr>'


def _breakable(name: str) -> str:
    """A name that is broken behind its joints rather than within a word."""
    return re.sub(r"([_/.:-])(?=\w)", r"\1<wbr>", html.escape(name))


def _cell(column: str, value: Cell, colours: Mapping[str, str]) -> str:
    if isinstance(value, bool) or value is None:
        return f'<td class="mark">{"●" if value else ""}</td>'
    if isinstance(value, str):
        dot = f'<i style="background:{colours[value]}"></i>' if value in colours else ""
        name = " ".join(value[: 2 * TEXT_CHARS].split())
        whole = f' title="{html.escape(name)}"' if len(name) > NAME_CHARS else ""
        cut = f"{name[:NAME_CHARS]} …" if whole else name
        return f'<td class="words" dir="auto"{whole}><div>{dot}{_breakable(cut)}</div></td>'
    return f'<td class="number">{"" if math.isnan(value) else FORMS.get(column, "{:.3f}".format)(value)}</td>'


def texts(
    frames: Frames, number: int, scores: ExampleScores, rows: Sequence[int], honesty: Honesty | None
) -> tuple[int, ...] | None:
    """Draw the selected examples, or those of the highest loss; those that are to be selected, None for no change."""
    if not rows:
        return _hardest(frames, scores)
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(_("**{texts} selected**", texts=f"{len(rows):,}"))
    per_point, to_trust = bound_switch(Explore.TRUST)
    right.toggle(_("Trust per point"), disabled=honesty is None, help=_(TRUST_HELP), **to_trust.by_value)
    table: dict[str, list[Cell]] = {}
    if per_point and honesty is not None:
        table[N_("Trust")] = [float(honesty.per_point_trustworthiness[row]) for row in rows]
        table[N_("Overlap")] = [float(honesty.per_point_overlap[row]) for row in rows]
    text_table(example_columns(frames.probe, scores, rows) | table, classes=frames.probe.classes)
    st.download_button(
        _("Selection as CSV"),
        lambda: example_table_csv(frames.probe, frames.store.logits(frames.run.id, frames.step_of(number)), rows),
        f"{frames.run.id}-step-{frames.step_of(number)}.csv",
        "text/csv",
        key="explore.selection.csv",
        icon=":material/download:",
    )
    return None


def _hardest(frames: Frames, scores: ExampleScores) -> tuple[int, ...] | None:
    """What there is to read before anything is selected."""
    st.caption(
        _(
            "{texts} are on the map. Click a point, or drag a box or a lasso around some, to read them here; hold "
            "Shift to add to them.",
            texts=probe_label(frames.probe),
        )
    )
    losses = scores.loss[: frames.probe.held_out]
    rows = [int(row) for row in np.argsort(-losses, kind="stable")[:HARDEST] if np.isfinite(losses[row])]
    if not rows:
        return None
    st.markdown(_("**Highest loss at this frame** · validation texts"))
    first: dict[str, list[Cell]] = {N_("Loss"): [float(losses[row]) for row in rows]}
    text_table(first | example_columns(frames.probe, scores, rows), classes=frames.probe.classes)
    if st.button(_("Select these"), key="explore.hardest.select", icon=":material/select_all:"):
        return tuple(rows)
    return None


def example_columns(probe: Probe, scores: ExampleScores, rows: Sequence[int]) -> dict[str, list[Cell]]:
    """Label, prediction, confidence and text of some examples; those that were trained on are marked."""
    columns: dict[str, list[Cell]] = {
        N_("Label"): [probe.classes[probe.labels[row]] for row in rows],
        N_("Prediction"): [probe.classes[scores.predicted[row]] for row in rows],
        N_("Confidence"): [float(scores.confidence[row]) for row in rows],
        N_("Text"): [probe.texts[row] for row in rows],
    }
    if any(row >= probe.held_out for row in rows):
        columns[N_("Trained on")] = [row >= probe.held_out for row in rows]
    return columns


AXES = ("x", "y", "z")


def downloads(frames: Frames, spec: MapSpec, maps: Mapping[int, Points], number: int) -> None:
    """Draw the button; the file is made when it is asked for."""
    st.download_button(
        _("Frame as CSV"),
        lambda: _frame_csv(frames, maps.get(number), number),
        f"{frames.run.id}-{spec.method}-{number}.csv",
        "text/csv",
        key="explore.frame.csv",
        icon=":material/download:",
        help=_("Every example with its place on this map, label, prediction and confidence."),
    )


def _frame_csv(frames: Frames, points: Points | None, number: int) -> bytes:
    records = example_records(frames.probe, frames.store.logits(frames.run.id, frames.step_of(number)))
    if points is not None:
        for record, point in zip(records, points, strict=True):
            record |= {axis: f"{value:.6g}" for axis, value in zip(AXES, point.tolist(), strict=False)}
    return csv_file(records)


def ids_as_text(ids: Iterable[int]) -> str:
    """Ids from 0 up, such as `3.7-12`; many scattered ones as compressed bits."""
    ordered = sorted(set(ids))
    if not ordered:
        return ""
    listed = SEPARATOR.join(f"{a}{RANGE}{b}" if b > a else str(a) for a, b in _ranges(ordered))
    if len(listed) <= LONGEST_LIST:
        return listed
    bits = bytearray(ordered[-1] // 8 + 1)
    for number in ordered:
        bits[number // 8] |= 1 << number % 8
    return BITS + base64.urlsafe_b64encode(zlib.compress(bytes(bits), 9)).decode().rstrip("=")


def ids_from_text(text: str, known: Collection[int]) -> tuple[int, ...]:
    """The known ids that a text names, ascending; none where it is no such text."""
    try:
        wanted = _from_bits(text[1:], max(known, default=0)) if text.startswith(BITS) else _from_list(text, len(known))
    except (ValueError, binascii.Error, zlib.error):
        return ()
    return tuple(sorted(wanted & set(known)))


def camera_from_text(text: str) -> str | None:
    """The text again where it says what one map is zoomed to, None for nonsense.

    The browser writes it: three numbers (two places and a reach, or two angles and a zoom), the last of them above 0.
    """
    try:
        numbers = [float(part) for part in text.split("_")]
    except ValueError:
        return None
    fits = len(numbers) == 3 and all(map(math.isfinite, numbers)) and numbers[2] > 0
    return text if fits else None


def _ranges(ordered: Sequence[int]) -> list[tuple[int, int]]:
    breaks = [i for i, (a, b) in enumerate(pairwise(ordered), start=1) if b != a + 1]
    return [(ordered[a], ordered[b - 1]) for a, b in pairwise([0, *breaks, len(ordered)])]


def _from_list(text: str, most: int) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(SEPARATOR)):
        first, _, last = part.partition(RANGE)
        start, end = int(first), int(last or first)
        # An address can ask for anything: a range is never longer than what there is.
        found.update(range(start, min(end, start + 2 * most) + 1))
    return found


def _from_bits(text: str, highest: int) -> set[int]:
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    bits = zlib.decompressobj().decompress(packed, highest // 8 + 1)
    return {number for number in range(min(8 * len(bits), highest + 1)) if bits[number // 8] >> number % 8 & 1}
