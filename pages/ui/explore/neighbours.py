"""The k nearest neighbours of an example in the frame's original space, compared with those at the first frame."""

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
from pages.ui.bound import bound, bound_nearest, segments
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.parts import escaped
from pages.ui.text_table import Cell, example_columns, text_table, truncate

METRICS: Mapping[str, str] = {"cosine": N_("Cosine"), "euclidean": N_("Euclidean")}
DEFAULT_K, MAX_K = 10, 100


@dataclass(frozen=True, slots=True)
class NearOne:
    """The nearest neighbours of one example, the anchor. All are rows of the probe set.

    Attributes:
        is_cosine: whether `values` are cosines, not distances.
        rows: neighbours in this frame, nearest first; values: cosine or distance of each.
        before: neighbours in the first frame.
        dimensions: of the space in which neighbours are searched.
    """

    anchor: int
    is_cosine: bool
    rows: list[int]
    values: list[float]
    before: frozenset[int]
    dimensions: int


def choose_near(frames: Frames, number: int, anchor: int | None) -> NearOne | None:
    """Draw the controls. Return the neighbours of the anchor, or None while there is no anchor."""
    most = max(1, min(MAX_K, len(frames.probe.ids) - 1))
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    problem = _("use 1 to {most} here", most=most)
    k, to_k = bound_nearest(Explore.NEIGHBOURS, range(1, most + 1), min(most, DEFAULT_K), problem, range(1, MAX_K + 1))
    metric, to_metric = bound(Explore.METRIC, METRICS)
    if most > 1:
        left.slider(_("Neighbours k"), 1, most, **to_k.by_value)
    with right:
        segments(_("Distance"), METRICS, to_metric, label_visibility="visible")
    # Build both indexes before the first click, so that its response is fast.
    now, start = (run_reads.index(frames, place, cast("Metric", metric)) for place in (number, frames.numbers[0]))
    if anchor is None:
        return None
    found = now.nearest(anchor, k)
    before = frozenset(start.nearest(anchor, k).indices.tolist())
    return NearOne(anchor, metric == "cosine", found.indices.tolist(), found.values.tolist(), before, now.width)


def neighbours(frames: Frames, scores: ExampleScores, found: NearOne | None, selected: int) -> None:
    """Draw the neighbours of the anchor. Args: selected: the number of selected examples."""
    if found is None:
        st.caption(_("Click a point to see its nearest neighbours, in the full embedding space at this frame."))
        return
    probe, rows, anchor = frames.probe, found.rows, found.anchor
    if selected > 1:
        st.caption(_("{texts} are selected. Showing the one clicked last, or the first:", texts=f"{selected:,}"))
    label, prediction = probe.classes[probe.labels[anchor]], probe.classes[scores.predicted[anchor]]
    confidence = percent(scores.confidence[anchor])
    predicted = _("predicted {label}, {confidence}", label=escaped(prediction), confidence=confidence)
    text = truncate(probe.texts[anchor], 240)
    st.markdown(f"**{escaped(label)}** · {predicted} · {escaped(text)}")
    out_of = _(
        "Among {examples}, unnormalised vectors with {dimensions} dimensions.",
        examples=ngettext("{count} example", "{count} examples", len(probe.ids)),
        dimensions=found.dimensions,
    )
    if frames.layers_at is not None:
        how_near = N_(
            "{stayed} of its {k} nearest neighbours were already neighbours at the first layer; {same} have its label."
        )
    else:
        how_near = N_(
            "{stayed} of its {k} nearest neighbours were already neighbours at step {step}; {same} have its label."
        )
    near = _(
        how_near,
        k=len(rows),
        stayed=sum(row in found.before for row in rows),
        step=f"{frames.numbers[0]:,}",
        same=sum(probe.labels[row] == probe.labels[anchor] for row in rows),
    )
    st.caption(sentences([near, out_of]))
    first_columns: dict[str, Sequence[Cell]] = {
        N_("Cosine") if found.is_cosine else N_("Distance"): found.values,
        # Translators: a column that marks neighbours that were none at the start
        N_("New"): [row not in found.before for row in rows],
    }
    text_table(first_columns | example_columns(probe, scores, rows), classes=probe.classes)
