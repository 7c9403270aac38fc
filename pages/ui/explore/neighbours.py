"""The k nearest examples of one, in the original space of the frame, and which of them were near at the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import streamlit as st

from core.messages import N_, _, ngettext, sentences
from core.quantities import percent
from core.representation.examples import ExampleScores
from core.representation.neighbours import Metric
from pages.ui.address import Explore
from pages.ui.bound import bound, bound_nearest
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.explore.texts import Cell, example_columns, text_table
from pages.ui.parts import escaped

METRICS: Mapping[Metric, str] = {"cosine": N_("Cosine"), "euclidean": N_("Euclidean")}
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
    problem = _("it is 1 to {most} here", most=most)
    k, to_k = bound_nearest(Explore.NEIGHBOURS, range(1, most + 1), min(most, DEFAULT_K), problem, range(1, MAX_K + 1))
    metric, to_metric = bound(Explore.METRIC, METRICS)
    if most > 1:
        left.slider(_("Neighbours k"), 1, most, **to_k.by_value)
    right.segmented_control(
        _("Distance"), list(METRICS), format_func=lambda name: _(METRICS[name]), required=True, **to_metric.by_default
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
        st.caption(_("Click a point to see which examples are nearest to it, in all dimensions of this frame."))
        return
    rows, anchor = found.rows, found.anchor
    stayed = sum(row in found.before for row in rows)
    if selected > 1:
        st.caption(_("Of {texts} selected texts, the one that was clicked last, or the first:", texts=f"{selected:,}"))
    st.markdown(_about(frames, scores, anchor))
    same = sum(frames.probe.labels[row] == frames.probe.labels[anchor] for row in rows)
    st.caption(sentences([_how_near(frames, len(rows), stayed, same), _out_of(frames, found)]))
    first_columns: dict[str, Sequence[Cell]] = {
        N_("Cosine") if found.metric == "cosine" else N_("Distance"): found.values,
        # Translators: a column that marks neighbours that were none at the start
        N_("New"): [row not in found.before for row in rows],
    }
    text_table(first_columns | example_columns(frames.probe, scores, rows), classes=frames.probe.classes)


def _how_near(frames: Frames, count: int, stayed: int, same: int) -> str:
    if frames.layers_at is not None:
        return _(
            "Of its {k} nearest, {stayed} were among them at the first layer; {same} have its label.",
            k=count,
            stayed=stayed,
            same=same,
        )
    return _(
        "Of its {k} nearest, {stayed} were among them at step {step}; {same} have its label.",
        k=count,
        stayed=stayed,
        step=f"{frames.numbers[0]:,}",
        same=same,
    )


def _out_of(frames: Frames, found: NearOne) -> str:
    return _(
        "Out of {examples}, vectors as they are, {dimensions} dimensions.",
        examples=ngettext("{count} example", "{count} examples", len(frames.probe.ids)),
        dimensions=found.dimensions,
    )


def _about(frames: Frames, scores: ExampleScores, anchor: int) -> str:
    probe = frames.probe
    label, prediction = probe.classes[probe.labels[anchor]], probe.classes[scores.predicted[anchor]]
    share = percent(scores.confidence[anchor])
    said = _("predicted {label}, {confidence}", label=escaped(prediction), confidence=share)
    return f"**{escaped(label)}** · {said} · {escaped(_short(probe.texts[anchor]))}"


def _short(text: str, most: int = 240) -> str:
    return text if len(text) <= most else f"{text[:most]} …"
