"""The selected examples: a table, a CSV file, and a short text for the address."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

import numpy as np
import streamlit as st

from core.artifacts.example_table import example_records
from core.messages import N_, _
from core.representation.examples import ExampleScores
from core.representation.neighbours import Honesty
from core.representation.projections import MapSpec, Points
from core.tasks.listing import csv_file
from pages.ui.address import Explore
from pages.ui.bound import bound_switch
from pages.ui.explore.run_reads import Frames
from pages.ui.parts import probe_label
from pages.ui.tables import Cell, csv_button, example_columns, select_button, text_table

TRUST_HELP = N_(
    "Per point: trustworthiness falls when neighbours on the map are far away in the original space; overlap is "
    "the fraction of neighbours on the map that are neighbours in the original space."
)
# A list of ranges with more characters is encoded as bits instead.
LONGEST_LIST = 300
BITS = "~"
RANGE, SEPARATOR = "-", "."


def texts(
    frames: Frames, number: int, scores: ExampleScores, rows: Sequence[int], honesty: Honesty | None
) -> tuple[int, ...] | None:
    """Draw the selected examples, or those with the highest loss. Return the rows to select, or None for no change."""
    if not rows:
        st.caption(
            _(
                "{texts} are on the map. Click a point, or drag a box or lasso around several, to read them here. "
                "Hold Shift to add to the selection.",
                texts=probe_label(frames.probe),
            )
        )
        losses = scores.loss[: frames.probe.held_out]
        hardest = [int(row) for row in np.argsort(-losses, kind="stable")[:8] if np.isfinite(losses[row])]
        if not hardest:
            return None
        st.markdown(_("**Highest loss at this frame** · validation texts"))
        first: dict[str, list[Cell]] = {N_("Loss"): [float(losses[row]) for row in hardest]}
        text_table(first | example_columns(frames.probe, scores, hardest), classes=frames.probe.classes)
        return select_button("hardest", hardest)
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.markdown(_("**{texts} selected**", texts=f"{len(rows):,}"))
    with right:
        label, about = _("Trustworthiness per point"), _(TRUST_HELP)
        per_point = bound_switch(label, Explore.TRUST, disabled=honesty is None, help=about)
    table: dict[str, list[Cell]] = {}
    if per_point and honesty is not None:
        table[N_("Trust")] = [float(honesty.per_point_trustworthiness[row]) for row in rows]
        table[N_("Overlap")] = [float(honesty.per_point_overlap[row]) for row in rows]
    text_table(example_columns(frames.probe, scores, rows) | table, classes=frames.probe.classes)
    step = frames.step_of(number)
    csv_button(
        _("Selection as CSV"),
        lambda: csv_file(example_records(frames.probe, frames.store.logits(frames.run.id, step), rows)),
        f"{frames.run.id}-step-{step}.csv",
        key="explore.selection.csv",
    )
    return None


def frame_button(frames: Frames, spec: MapSpec, points: Points | None, number: int) -> None:
    """Draw the button that saves a frame as CSV, with map coordinates if the frame has a map."""

    def content() -> bytes:
        records = example_records(frames.probe, frames.store.logits(frames.run.id, frames.step_of(number)))
        if points is not None:
            for record, point in zip(records, points, strict=True):
                record |= {axis: f"{value:.6g}" for axis, value in zip("xyz", point.tolist(), strict=False)}
        return csv_file(records)

    csv_button(
        _("Frame as CSV"),
        content,
        f"{frames.run.id}-{spec.method}-{number}.csv",
        key="explore.frame.csv",
        help=_("Every example with its map position, label, prediction and confidence."),
    )


def ids_as_text(ids: Iterable[int]) -> str:
    """Encode ids, 0 and above, as ranges such as `3.7-12`, or as compressed bits if that is too long."""
    ordered = sorted(set(ids))
    if not ordered:
        return ""
    breaks = [i for i, (a, b) in enumerate(pairwise(ordered), start=1) if b != a + 1]
    ranges = [(ordered[a], ordered[b - 1]) for a, b in pairwise([0, *breaks, len(ordered)])]
    listed = SEPARATOR.join(f"{a}{RANGE}{b}" if b > a else str(a) for a, b in ranges)
    if len(listed) <= LONGEST_LIST:
        return listed
    bits = bytearray(ordered[-1] // 8 + 1)
    for number in ordered:
        bits[number // 8] |= 1 << number % 8
    return BITS + base64.urlsafe_b64encode(zlib.compress(bytes(bits), 9)).decode().rstrip("=")


def ids_from_text(text: str, known: Collection[int]) -> tuple[int, ...]:
    """Return the known ids that a text encodes, ascending; none if the text is invalid."""
    wanted: set[int] = set()
    try:
        if text.startswith(BITS):
            packed = base64.urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
            bits = np.frombuffer(zlib.decompressobj().decompress(packed, max(known, default=0) // 8 + 1), np.uint8)
            wanted.update(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist())
        else:
            for part in filter(None, text.split(SEPARATOR)):
                first, _, last = part.partition(RANGE)
                start, end = int(first), int(last or first)
                # An address can hold anything, so the length of a range is capped.
                wanted.update(range(start, min(end, start + 2 * len(known)) + 1))
    except (ValueError, binascii.Error, zlib.error):
        return ()
    return tuple(sorted(wanted & set(known)))


def camera_from_text(text: str) -> str | None:
    """Return the text if it is a valid camera of one map, else None.

    The browser writes three numbers, the last above 0: two coordinates and a reach, or two angles and a zoom.
    """
    try:
        numbers = [float(part) for part in text.split("_")]
    except ValueError:
        return None
    fits = len(numbers) == 3 and all(map(math.isfinite, numbers)) and numbers[2] > 0
    return text if fits else None
