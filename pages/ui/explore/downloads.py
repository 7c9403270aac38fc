"""What is shown, as a file: the frame with its places."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.artifacts.example_table import example_records
from core.messages import _
from core.representation.projections import MapSpec, Points
from core.tasks.listing import csv_file
from pages.ui.explore.run_reads import Frames

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
