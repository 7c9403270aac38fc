"""The k nearest examples of one, in the original space of the frame, and which of them were near at the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import streamlit as st

from core.quantities import counted, percent
from core.representation.examples import ExampleScores
from core.representation.neighbours import Metric
from pages.ui.address import Explore
from pages.ui.bound import bound, bound_nearest
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.explore.texts import example_columns
from pages.ui.parts import escaped
from pages.ui.text_table import Cell, text_table

METRICS: Mapping[Metric, str] = {"cosine": "Cosine", "euclidean": "Euclidean"}
DEFAULT_K, MAX_K = 10, 100


@dataclass(frozen=True, slots=True)
class Near:
    """How near is meant: how many, and by which distance."""

    k: int
    metric: Metric


def choose_near(frames: Frames) -> Near:
    """Draw the controls and read them."""
    most = max(1, min(MAX_K, len(frames.probe.ids) - 1))
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    k, to_k = bound_nearest(
        Explore.NEIGHBOURS, range(1, most + 1), min(most, DEFAULT_K), f"it is 1 to {most} here", range(1, MAX_K + 1)
    )
    metric, to_metric = bound(Explore.METRIC, METRICS)
    if most > 1:
        left.slider("Neighbours k", 1, most, **to_k.by_value)
    right.segmented_control(
        "Distance", list(METRICS), format_func=METRICS.__getitem__, required=True, **to_metric.by_default
    )
    return Near(k, cast("Metric", metric))


@dataclass(frozen=True, slots=True)
class NearOne:
    """The examples nearest to one, the anchor; rows of the probe.

    Attributes:
        rows: in this frame, the nearest first; values: their cosines or distances.
        before: in the first frame.
        dimensions: in which distances are taken.
    """

    anchor: int
    metric: Metric
    rows: list[int]
    values: list[float]
    before: frozenset[int]
    dimensions: int


def find_near(frames: Frames, number: int, anchor: int | None, near: Near) -> NearOne | None:
    """What is nearest to the example that was clicked last; None while none is."""
    # Both are made ready before the first click, which then has its answer at once.
    now, start = (run_reads.index(frames, place, near.metric) for place in (number, frames.numbers[0]))
    if anchor is None:
        return None
    found = now.nearest(anchor, near.k)
    before = frozenset(start.nearest(anchor, near.k).indices.tolist())
    return NearOne(anchor, near.metric, found.indices.tolist(), found.values.tolist(), before, now.width)


def neighbours(frames: Frames, scores: ExampleScores, found: NearOne | None, selected: int = 1) -> None:
    """Draw the nearest examples of the one that was clicked last. Args: selected: how many examples are."""
    if found is None:
        st.caption("Click a point to see which examples are nearest to it, in all dimensions of this frame.")
        return
    rows, anchor = found.rows, found.anchor
    stayed = sum(row in found.before for row in rows)
    if selected > 1:
        st.caption(f"Of {selected:,} selected texts, the one that was clicked last, or the first:")
    st.markdown(_about(frames, scores, anchor))
    first = "the first layer" if frames.layers_at is not None else f"step {frames.numbers[0]:,}"
    same = sum(frames.probe.labels[row] == frames.probe.labels[anchor] for row in rows)
    st.caption(
        f"Of its {len(rows)} nearest, {stayed} were among them at {first}; {same} have its label. Out of "
        f"{counted(len(frames.probe.ids), 'example')}, vectors as they are, {found.dimensions} dimensions."
    )
    first_columns: dict[str, Sequence[Cell]] = {
        "Cosine" if found.metric == "cosine" else "Distance": found.values,
        "New": [row not in found.before for row in rows],
    }
    text_table(first_columns | example_columns(frames.probe, scores, rows), classes=frames.probe.classes)


def _about(frames: Frames, scores: ExampleScores, anchor: int) -> str:
    probe = frames.probe
    label, prediction = probe.classes[probe.labels[anchor]], probe.classes[scores.predicted[anchor]]
    said = f"predicted {escaped(prediction)}, {percent(scores.confidence[anchor])}"
    return f"**{escaped(label)}** · {said} · {escaped(_short(probe.texts[anchor]))}"


def _short(text: str, most: int = 240) -> str:
    return text if len(text) <= most else f"{text[:most]} …"
