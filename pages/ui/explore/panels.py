"""Panels of Explore: the confusion matrix and the scores of each class, and the nearest neighbours of an example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np
import streamlit as st

from core.errors import StoreError
from core.events import VALIDATION
from core.figures.template import class_colour
from core.messages import N_, _, ngettext, sentences
from core.quantities import percent
from core.representation.examples import ExampleScores, confusion
from core.representation.movement import class_centroids, margins
from core.representation.neighbours import Metric
from core.representation.recall import GROUPS, class_groups, is_imbalanced, recall
from core.tasks.listing import csv_file
from core.workers.run_rows import train_counts
from pages.ui.address import Explore
from pages.ui.bound import bound_nearest, bound_segments
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.parts import escaped
from pages.ui.tables import (
    Cell,
    Head,
    TableCell,
    cell_table,
    csv_button,
    example_columns,
    select_button,
    text_table,
    truncate,
)

# Columns of recall and interval, by split.
RECALL_COLUMNS = {
    VALIDATION: (N_("Validation"), N_("Validation interval")),
    "test": (N_("Test"), N_("Test interval")),
}
# Rows of the matrix that are visible at once.
SEEN_CLASSES = 10
METRICS: Mapping[str, str] = {"cosine": N_("Cosine"), "euclidean": N_("Euclidean")}
DEFAULT_K, MAX_K = 10, 100


def classes(frames: Frames, number: int, scores: ExampleScores) -> tuple[int, ...] | None:
    """Draw the panel. Return the rows that the user just chose to select, or None."""
    chosen, probe = _confusion(frames, scores), frames.probe
    vectors = frames.vectors(number)
    margin = margins(vectors, probe.labels)
    centroids = class_centroids(vectors, probe.labels, len(probe.classes))
    lengths = np.linalg.norm(centroids, axis=1)
    by_class: dict[str, list[Cell]] = {N_("Class"): list(probe.classes)}
    by_class |= {name: [] for name in (N_("Examples"), N_("Mean margin"), N_("Concentration"))}
    for label in range(len(probe.classes)):
        mine = np.asarray(probe.labels) == label
        known = np.isfinite(margin[mine])
        by_class["Examples"].append(float(mine.sum()))
        by_class["Mean margin"].append(float(margin[mine][known].mean()) if known.any() else np.nan)
        by_class["Concentration"].append(float(lengths[label]) if mine.any() else np.nan)
    _recalls(frames, scores)
    text_table(by_class, height=320, classes=probe.classes, label=N_("Classes"))
    st.caption(_("Concentration: length of the mean of the normalised vectors, 1 if all vectors point the same way."))
    smallest = np.argsort(np.where(np.isfinite(margin), margin, np.inf))[:12]
    rows = [int(row) for row in smallest if np.isfinite(margin[row])]
    if rows:
        st.markdown(_("**Smallest margins**"))
        st.caption(
            _(
                "The margin is an example's cosine to its own class centroid (computed without the example) "
                "minus its highest cosine to any other centroid. Below 0 the example lies closer to another "
                "class."
            )
        )
        first_columns: dict[str, list[Cell]] = {N_("Margin"): [float(margin[row]) for row in rows]}
        columns = first_columns | example_columns(probe, scores, rows)
        text_table(columns, height=280, classes=probe.classes)
        chosen = select_button("margins", rows) or chosen
    return chosen


def _recalls(frames: Frames, scores: ExampleScores) -> None:
    """Draw the recall of each class, and of head, middle and tail if the training rows are imbalanced."""
    probe, run, store = frames.probe, frames.run, frames.store
    held_out, test = probe.held_out, None
    with suppress(StoreError):  # a damaged file costs the test columns alone
        test = store.predictions(run.id)
    counts = train_counts(store.folder, run.config.task, run.config.seed)
    splits = {VALIDATION: (np.asarray(probe.labels[:held_out]), scores.predicted[:held_out])}
    if test is not None:
        splits["test"] = (np.asarray(test.labels), test.logits.argmax(1))

    def columns(names: Sequence[str], groups: Sequence[Sequence[int]]) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = {N_("Class"): list(names)}
        if counts is not None:
            found[N_("Training rows")] = [float(sum(counts[one] for one in group)) for group in groups]
        for split, (labels, predicted) in splits.items():
            share, interval = RECALL_COLUMNS[split]
            recalls = [recall(labels, predicted, group) for group in groups]
            found[share] = [one.share for one in recalls]
            found[interval] = [
                _("{low} to {high}", low=percent(one.low), high=percent(one.high)) if one.rows else "–"
                for one in recalls
            ]
        return found

    st.markdown(_("**Recall of each class**"))
    each_class = columns(probe.classes, [[label] for label in range(len(probe.classes))])
    text_table(each_class, height=320, classes=probe.classes, label=N_("Recall of each class"))
    if counts is not None and is_imbalanced(counts):
        groups = class_groups(counts)
        text_table(columns([_(GROUPS[name]) for name in groups], list(groups.values())), label=N_("Head and tail"))
        st.caption(_("Head and tail are the thirds of the classes with the most and with the fewest training rows."))
    st.caption(
        _(
            "Recall is the fraction of a class's texts that are predicted correctly: validation texts at this frame, "
            "and test texts at the end of the run. Intervals are 95% Wilson intervals."
        )
    )


def _confusion(frames: Frames, scores: ExampleScores) -> tuple[int, ...] | None:
    names, held_out = frames.probe.classes, frames.probe.held_out
    labels, predicted = np.asarray(frames.probe.labels[:held_out]), scores.predicted[:held_out]
    counts = confusion(labels, predicted, len(names))
    st.markdown(_("**Confusion matrix** · rows are labels, columns are predictions; validation texts"))
    cells: list[list[TableCell | None]] = [[None] * len(names) for _name in names]  # [labels][predictions]
    for label, prediction in np.argwhere(counts).tolist():
        count = int(counts[label, prediction])
        about = _(
            "Label {label}, predicted {prediction}: {examples}",
            label=names[label],
            prediction=names[prediction],
            examples=ngettext("{count} example", "{count} examples", count),
        )
        share = count / int(counts[label].sum())
        kind = "right" if label == prediction else "wrong"
        cells[label][prediction] = TableCell(str(count), about, share, kind=kind)
    heads = [Head(name, class_colour(label)) for label, name in enumerate(names)]
    # Translators: rows of a table are labels, its columns predictions
    corner = _("label ↓  prediction →")
    key = f"explore.confusion.{frames.run.id}"
    cell = cell_table(heads, heads, cells, label=_("Confusion matrix"), corner=corner, key=key)
    with st.container(horizontal=True, vertical_alignment="center"):
        words = [_("Click a cell to select its examples on the map. Shading shows the share of each row.")]
        if len(names) > SEEN_CLASSES:
            words.append(_("Scroll to see all {classes} classes.", classes=len(names)))
        st.caption(sentences(words), width="stretch")
        records = [
            {"label": names[label], "prediction": names[prediction], "examples": str(counts[label, prediction])}
            for label, prediction in np.argwhere(counts).tolist()
        ]
        csv_button(
            "CSV",
            lambda: csv_file(records),
            f"{frames.run.id}-confusion.csv",
            key="explore.confusion.csv",
            type="tertiary",
            on_click="ignore",
        )
    if cell is None:
        return None
    return tuple(np.flatnonzero((labels == cell[0]) & (predicted == cell[1])).tolist())


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
    if most > 1:
        left.slider(_("Neighbours k"), 1, most, **to_k.by_value)
    with right:
        metric = bound_segments(_("Distance"), Explore.METRIC, METRICS, label_visibility="visible", wrap=None)
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
