"""Representation measures over the frames, of training rows, Spearman on a similarity task, and what moved most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.artifacts.cache import read
from core.artifacts.maps import run_request
from core.artifacts.measures import PAIRS_MAX, TRAINING_MEASURES, TRAINING_ROWS_MAX, TrainingMeasures, read_similarity
from core.artifacts.weights import all_known, weight_stamps
from core.errors import PlaygroundError
from core.figures.small_multiples import Path, measures_figure, plane_figure
from core.messages import N_, _, join_list, ngettext, pgettext, sentences
from core.quantities import percent, signed
from core.representation.examples import ExampleScores
from core.representation.metrics import BETTER, METRICS
from core.representation.movement import cosine_distances
from core.representation.neighbours import all_neighbours, kept_neighbours
from core.store import RunRecord, Status, Store
from core.tasks.listing import csv_text
from pages.ui import reads
from pages.ui.address import ON, Compare, Explore
from pages.ui.bound import bound_choice, bound_nearest
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import Frames
from pages.ui.live_figure import live_figure
from pages.ui.parts import distinct, draw_cards, escaped, missing_weights
from pages.ui.tables import Cell, csv_button, example_columns, select_button, text_table
from pages.ui.waiting import complete_since, ensure_job

SIMILARITY = "spearman_similarity"
HEADS = (N_("Measure"), N_("Better if"), N_("First"), N_("Last"), N_("Settings"), N_("Source"))
LOOKS: Mapping[str, dict[str, Any]] = {
    "First": {"alignment": "right"},
    "Last": {"alignment": "right"},
    "Settings": {"width": "large"},
}
ABOUT = N_(
    "Computes the accuracy of a linear SVM and of 1-NN, the agreement of clusters with labels and other "
    "measures on up to {count} training rows, with the weights of the last step. Takes seconds to minutes; the "
    "result is stored."
)
FLATTERING = N_(
    "The encoder has learned from these rows, so training rows flatter the vectors: compare with the validation texts."
)
MEASURE = N_("Measure")


def measures(frames: Frames, number: int) -> bool:
    """Draw the section. Return whether something is still being computed."""
    st.header(_("How good is the representation?"))
    if frames.layers_at is not None:
        st.caption(_("Measures are computed at the steps of the run. Under More, set Frames to “Steps of the run”."))
        return False
    wanted = Explore.MEASURES.text == ON
    found = run_reads.measures(frames)
    if not found and not wanted:
        st.caption(
            _(
                "Measures the validation texts at up to 24 frames: accuracy of a linear SVM and of 1-NN, "
                "agreement of clusters with labels, alignment, uniformity, silhouette and effective rank. "
                "Takes seconds to minutes; results are stored."
            )
        )
        if st.button(_("Measure this run"), icon=":material/straighten:", key="explore.measure"):
            Explore.MEASURES.put(True)
            st.rerun()
        return False
    busy = False
    if len(found) < len(frames.numbers):
        busy = ensure_job("measures", run_request(frames.run), N_("Measures"), since=complete_since(frames.run))
    busy = _similarity_task(frames) or busy
    draw_cards("alignment", "uniformity", "effective_rank", "linear_probe")
    if measured := {step: known.values for step, known in found.items() if known.values}:
        _draw(frames, number, measured)
    return busy


def _draw(frames: Frames, number: int, measured: Mapping[int, Mapping[str, float | None]]) -> None:
    """Draw the curves, the table and the CSV button. Args: measured: the measures by step."""
    steps = list(measured)
    values = {name: [of_step.get(name) for of_step in measured.values()] for name in METRICS if name != SIMILARITY}
    task = Explore.SIMILARITY.text
    scores = read_similarity(frames.folder, task) if task else None
    labels = {name: (_(entry.short or entry.label), entry.better) for name, entry in METRICS.items()}
    axis, shares = pgettext("axis", "step"), {name for name, entry in METRICS.items() if entry.share}
    live_figure(
        measures_figure(steps, values, labels, number, axis=axis, revision=frames.run.id, shares=shares),
        key="explore.measures",
        description=_("Representation measures by step."),
    )
    rows = [_row(name, column[0], column[-1]) for name, column in values.items()]
    if scores is not None:
        by_step = sorted(scores.values.items())
        rows.append(
            _row(SIMILARITY, by_step[0][1], by_step[-1][1], ngettext("{count} pair", "{count} pairs", scores.pairs))
        )
    table = pd.DataFrame([dict(zip(HEADS, row, strict=True)) for row in rows])
    st.dataframe(
        table,
        hide_index=True,
        key="explore.measures.table",
        column_config={name: st.column_config.TextColumn(_(name), **LOOKS.get(name, {})) for name in HEADS},
    )
    st.caption(
        _(
            "Measured on {texts} at {frames}, from step {first} to {last}.",
            texts=ngettext("{count} validation text", "{count} validation texts", frames.probe.held_out),
            frames=ngettext("{count} frame", "{count} frames", len(steps)),
            first=f"{steps[0]:,}",
            last=f"{steps[-1]:,}",
        )
    )
    draw_plane({frames.run.title: measured}, key="explore.plane")
    csv_button(
        _("Measures as CSV"),
        lambda: csv_text(["step", *values], zip(steps, *values.values(), strict=True)),
        f"{frames.run.id}-measures.csv",
        key="explore.measures.csv",
    )


def draw_plane(paths: Mapping[str, Path], *, key: str) -> None:
    """Draw the plane of alignment and uniformity, with the path of each run."""
    description = _("Alignment against uniformity, one path per run.")
    live_figure(plane_figure(paths, revision=key), key=key, description=description)
    st.caption(
        _(
            "Each line leads from the first frame of a run (circle) to its last (arrow), measured on normalised "
            "vectors of the validation texts. In the lower left, each class is tight while the texts as a whole "
            "are spread out. Source: Wang & Isola 2020."
        )
    )


def _row(name: str, first: float | None, last: float | None, pairs: str = "") -> tuple[str, ...]:
    """Return one row of the table, in the order of HEADS. Args: pairs: number of pairs, added to the settings."""
    entry = METRICS[name]
    settings = _(entry.settings)
    if pairs:
        # Translators: two sentences, the second is such as "1,080 pairs."
        settings = _("{settings} {pairs}.", settings=settings, pairs=pairs)
    cells = _cell(name, first), _cell(name, last)
    return _(entry.label), _(BETTER[entry.better]), *cells, settings, _(entry.source)


def _cell(name: str, value: float | None) -> str:
    """Format a measure as Compare does."""
    if value is None:
        return "–"
    return percent(value) if METRICS[name].share else signed(value, 3)


def _similarity_task(frames: Frames) -> bool:
    own = [task for task in reads.library().tasks() if task.kind == "similarity"]
    ids = [task.id for task in own]
    tasks = dict(zip(ids, distinct([task.name for task in own], ids), strict=True))
    if not tasks:
        st.caption(
            _(
                "Spearman's ρ on similarity needs a task with scores. Fetch STS-B on the Data page, or add a file "
                "of scored pairs there."
            )
        )
        return False
    # Translators: no similarity task
    options = {"": _("None"), **tasks}
    about = _(
        "Spearman's ρ between cosine and human score on up to {pairs} pairs, at steps with stored weights.",
        pairs=f"{PAIRS_MAX:,}",
    )
    task = bound_choice(_("Similarity task"), Explore.SIMILARITY, options, help=about, width=320)
    if not task:
        return False
    try:
        stamps = weight_stamps(frames.store, frames.run)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
        return False
    missing_weights(frames.run)
    known = read_similarity(frames.folder, task)
    busy = False
    if known is None or not all_known(frames.run, stamps, known.stamps):
        request = {"run": frames.run.id, "what": "similarity", "task": task}
        busy = ensure_job("inspect", request, N_("Reading the pairs"), since=complete_since(frames.run))
        known = read_similarity(frames.folder, task)
    if known is not None:
        values = join_list(
            _("step {step}: {value}", step=f"{step:,}", value=_cell(SIMILARITY, value))
            for step, value in known.values.items()
        )
        st.markdown(_("**Spearman on {task}** · {values}", task=escaped(tasks[task]), values=values))
    return busy


LISTED = 30
K = 10


def movement(frames: Frames, number: int, scores: ExampleScores) -> tuple[int, ...] | None:
    """Draw the examples that moved most. Return the rows to select, or None to keep the selection."""
    earlier = [other for other in frames.numbers if other < number]
    if not earlier:
        st.caption(_("This is the first frame. Move to a later one to see which examples moved."))
        return None
    what = _("Since layer") if frames.layers_at is not None else _("Since step")
    since = earlier[0]
    if len(earlier) > 1:
        since, to_since = bound_nearest(Explore.SINCE, earlier, since, known=frames.numbers)
        st.select_slider(what, earlier, format_func=lambda n: f"{n:,}", **to_since.by_value)
    turned = cosine_distances(frames.vectors(since), frames.vectors(number))
    kept = _kept(frames, since, number)
    before = run_reads.scores(frames, since)
    rows = np.argsort(-turned, kind="stable")[:LISTED].tolist()
    st.caption(
        _(
            "Rotation: 1 − cosine between an example's vectors in the two frames; mean {turned:.3f}. Kept: "
            "fraction of its {k} nearest neighbours that stayed; mean {kept}.",
            turned=float(turned.mean()),
            k=min(K, len(turned) - 1),
            kept=percent(kept.mean()),
        )
    )
    known = example_columns(frames.probe, scores, rows)
    columns: dict[str, list[Cell]] = {
        N_("Rotation"): [float(turned[row]) for row in rows],
        N_("Kept"): [float(kept[row]) for row in rows],
        # Translators: what was predicted at the earlier of two frames
        N_("Before"): [frames.probe.classes[before.predicted[row]] for row in rows],
        # With more columns, three long class names would not fit.
        **{name: known[name] for name in ("Label", "Prediction", "Text")},
    }
    text_table(columns, classes=frames.probe.classes)
    return select_button("moved", rows)


@run_reads.cached_by_frames(max_entries=64)
def _kept(frames: Frames, since: int, number: int) -> np.ndarray:
    before, after = (all_neighbours(frames.vectors(frame), K) for frame in (since, number))
    return kept_neighbours(before, after)


def training_measures(store: Store, runs: Mapping[str, RunRecord], page: type[Explore] | type[Compare]) -> bool:
    """Draw the measures of runs by name, or offer to compute them. Return whether any are being computed."""
    st.header(_("Vectors of training rows"))
    if page.TRAINING.text != ON:
        st.caption(_(ABOUT, count=f"{TRAINING_ROWS_MAX:,}"))
        if st.button(_("Measure training rows"), icon=":material/straighten:", key="training.measure"):
            page.TRAINING.put(True)
            st.rerun()
        return False
    known, busy = dict[str, TrainingMeasures](), False
    for name, run in runs.items():
        path, stamps = store.run_folder(run.id) / TRAINING_MEASURES, weight_stamps(store, run)
        found = read(TrainingMeasures, path)
        if found is not None and stamps.get(run.steps, found.stamp) == found.stamp:
            known[name] = found
        elif run.status != Status.FINISHED:
            st.caption(_("{run}: training rows can be measured once the run has finished.", run=name))
        elif run.steps not in stamps:
            st.caption(_("{run}: the weights of the last step are not stored.", run=name))
            missing_weights(run)
        else:
            request = {"run": run.id, "what": "training"}
            computing = ensure_job("inspect", request, N_("Measuring training rows"), since=complete_since(run))
            busy = busy or computing
    if not known:
        return busy
    rows = []
    for name in next(iter(known.values())).values:
        row = {_(MEASURE): _(METRICS[name].label)}
        for of_run, found in known.items():
            row[of_run] = _cell(name, found.values.get(name))
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content", key="training.table")
    counts = join_list(
        ngettext("{taken} of {count} training row", "{taken} of {count} training rows", rows, taken=f"{taken:,}")
        for taken, rows in dict.fromkeys((found.taken, found.rows) for found in known.values())
    )
    measured = _("Measured on {rows}, spaced evenly, with the labels of training.", rows=counts)
    st.caption(sentences([measured, _(FLATTERING)]))
    return busy
