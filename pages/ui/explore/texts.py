"""The selected examples as a table, and as a file; the frame with its places as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from core.artifacts.example_table import example_records, example_table_csv
from core.artifacts.maps import KeptHonesty
from core.events import Probe
from core.messages import N_, _
from core.representation.examples import ExampleScores
from core.representation.projections import MapSpec, Points
from core.tasks.listing import csv_file
from pages.ui.address import Explore
from pages.ui.bound import bound_switch
from pages.ui.explore.run_reads import Frames
from pages.ui.parts import probe_label
from pages.ui.text_table import Cell, text_table

HARDEST = 8
TRUST_HELP = N_(
    "For each point: trustworthiness falls the farther away its neighbours on the map really are; overlap is the share "
    "of its neighbours on the map that are neighbours in the original space."
)


def texts(
    frames: Frames, number: int, scores: ExampleScores, rows: Sequence[int], honesty: KeptHonesty | None
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
