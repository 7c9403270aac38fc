"""What is shown, as files: the frame with its places, and all vectors for TensorBoard's Embedding Projector."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import streamlit as st

from core.artifacts.projector import example_records, spread, write_projector
from core.messages import _
from core.representation.projections import MapSpec, Points
from core.tasks.listing import csv_file
from pages.ui.explore.run_reads import Frames

AXES = ("x", "y", "z")


def downloads(frames: Frames, spec: MapSpec, maps: Mapping[int, Points], number: int) -> None:
    """Draw the buttons; files are made when they are asked for."""
    with st.container(horizontal=True):
        st.download_button(
            _("Frame as CSV"),
            lambda: _frame_csv(frames, maps.get(number), number),
            f"{frames.run.id}-{spec.method}-{number}.csv",
            "text/csv",
            key="explore.frame.csv",
            icon=":material/download:",
            help=_("Every example with its place on this map, label, prediction and confidence."),
        )
        if frames.layers_at is None:
            st.download_button(
                _("Vectors for TensorBoard"),
                lambda: _projector(frames),
                f"{frames.run.id}-projector.zip",
                "application/zip",
                key="explore.projector",
                icon=":material/download:",
                help=_("Files of the Embedding Projector: vectors and metadata of up to 24 frames."),
            )


def _frame_csv(frames: Frames, points: Points | None, number: int) -> bytes:
    records = example_records(frames.probe, frames.store.logits(frames.run.id, frames.step_of(number)))
    if points is not None:
        for record, point in zip(records, points, strict=True):
            record |= {axis: f"{value:.6g}" for axis, value in zip(AXES, point.tolist(), strict=False)}
    return csv_file(records)


def _projector(frames: Frames) -> bytes:
    def read(step: int) -> tuple[np.ndarray, np.ndarray]:
        return frames.store.embeddings(frames.run.id, step), frames.store.logits(frames.run.id, step)

    target = io.BytesIO()
    write_projector(target, frames.probe, spread(frames.numbers), read, title=frames.run.title)
    return target.getvalue()
