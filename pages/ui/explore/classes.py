"""Classes: the confusion matrix, whose cells select points, and how well each class holds together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from core.representation.examples import ExampleScores, confusion
from core.representation.movement import class_centroids, margins
from pages.ui import state
from pages.ui.explore.run_reads import Frames
from pages.ui.explore.texts import example_columns
from pages.ui.text_table import Cell, text_table

CONFUSION = "explore.confusion"
SMALLEST = 12


def classes(frames: Frames, number: int, scores: ExampleScores) -> tuple[int, ...] | None:
    """Draw what can be said of classes; the examples of a cell that was just chosen, None when none was."""
    held_out = frames.probe.held_out
    chosen = _confusion(frames, scores, held_out)
    vectors = frames.vectors(number)
    margin = margins(vectors, frames.probe.labels)
    _per_class(frames, vectors, scores, margin)
    rows = [int(row) for row in np.argsort(np.where(np.isfinite(margin), margin, np.inf))[:SMALLEST]]
    rows = [row for row in rows if np.isfinite(margin[row])]
    if rows:
        st.markdown("**Smallest margins**")
        st.caption(
            "Cosine to the own class's centroid, without the example itself, minus the highest to another's: below 0 "
            "an example lies with another class."
        )
        first_columns: dict[str, list[Cell]] = {"Margin": [float(margin[row]) for row in rows]}
        columns = first_columns | example_columns(frames.probe, scores, rows)
        text_table(columns, height=280, classes=frames.probe.classes)
        if st.button("Select these", key="explore.margins.select", icon=":material/select_all:"):
            chosen = tuple(rows)
    return chosen


def _confusion(frames: Frames, scores: ExampleScores, held_out: int) -> tuple[int, ...] | None:
    names = _distinct(frames.probe.classes)
    labels, predicted = np.asarray(frames.probe.labels[:held_out]), scores.predicted[:held_out]
    counts = confusion(labels, predicted, len(names))
    st.markdown("**Confusion matrix** · rows are labels, columns predictions, validation texts")
    event = st.dataframe(
        pd.DataFrame(counts, index=names, columns=names),
        key=CONFUSION,
        on_select="rerun",
        selection_mode="single-cell",
    )
    st.caption("Choose a cell to select its examples on the map.")
    cells = event.selection.cells if event else []
    cell = (int(cells[0][0]), str(cells[0][1])) if cells else None
    if cell == state.remembered(CONFUSION + ".cell", lambda: None):
        return None
    state.remember(CONFUSION + ".cell", cell)
    if cell is None:
        return None
    there = (labels == cell[0]) & (predicted == names.index(cell[1]))
    return tuple(np.flatnonzero(there).tolist())


def _per_class(frames: Frames, vectors: np.ndarray, scores: ExampleScores, margin: np.ndarray) -> None:
    probe = frames.probe
    labels = np.asarray(probe.labels)
    centroids = class_centroids(vectors, probe.labels, len(probe.classes))
    lengths = np.linalg.norm(centroids.vectors, axis=1)
    rows = []
    for label, name in enumerate(probe.classes):
        mine = labels == label
        right = scores.correct[: probe.held_out][mine[: probe.held_out]]
        rows.append(
            {
                "Class": name,
                "Examples": int(mine.sum()),
                "Accuracy": 100 * float(right.mean()) if len(right) else None,
                "Mean margin": float(np.nanmean(margin[mine])) if np.isfinite(margin[mine]).any() else None,
                "Tightness": float(lengths[label]) if centroids.present[label] else None,
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="explore.classes",
        column_config={
            "Accuracy": st.column_config.NumberColumn(format="%.1f %%", help="Of its validation texts."),
            "Mean margin": st.column_config.NumberColumn(format="%.3f"),
            "Tightness": st.column_config.NumberColumn(
                format="%.3f", help="Length of the mean of its normalised vectors: 1 when all point one way."
            ),
        },
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """Column names have to differ, and two classes may be called alike once white space is gone."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out
