"""Compare: two to six runs side by side, as maps with their selected examples, curves or scores, or a twin of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.errors import PlaygroundError
from core.events import TRAIN, VALIDATION
from core.figures.panels import frame_at
from core.messages import N_, _, join_label, join_list, ngettext
from core.quantities import percent
from core.representation.examples import ExampleScores
from core.store import Status
from core.tasks.listing import csv_file
from core.workers import Engine
from pages.ui import reads, state
from pages.ui.address import Compare
from pages.ui.bound import bound_segments
from pages.ui.compare.curves import curves
from pages.ui.compare.maps import about, choose_map, maps_of, panels_of, separation_over_seeds
from pages.ui.compare.pair import SELECTION_KEY, pair
from pages.ui.compare.picking import Compared, Linked, RunFrames, link_examples, load_compared, pick
from pages.ui.compare.scores import overview
from pages.ui.compare.twin_form import twin_form
from pages.ui.controls import pair_page
from pages.ui.explore import run_reads
from pages.ui.explore.run_reads import predictions_of
from pages.ui.explore.texts import ids_as_text, ids_from_text
from pages.ui.map_view import MapState, map_now, map_view
from pages.ui.parts import escaped, first_steps, page_head, page_link, run_titles, show_errors, status_badge
from pages.ui.tables import csv_button
from pages.ui.waiting import draw_fragment, poll_while

VIEWS = {
    "maps": N_("Maps and examples"),
    "curves": N_("Curves"),
    "scores": N_("Settings and scores"),
    "twin": N_("Rerun with one change"),
}
# Heights of a map in one row and in two: they fill the screen below header and controls, unless they become too small.
MOST_IN_A_ROW = 3
ONE_ROW, LOWER = "clamp(18rem, 100dvh - 20rem, 44rem)", "clamp(11rem, (100dvh - 21.5rem) / 2, 340px)"
MOST_ROWS = 1_000
# Translators: parts of a data set, of one of which a text is.
SPLITS = {VALIDATION: N_("validation"), TRAIN: N_("train")}


def page() -> None:
    engine = reads.open_engine()
    head = page_head(_("Compare"))
    runs = engine.store.runs()
    seen = [run for run in runs if run.probe_known]
    if len(runs) < 2 and not seen:
        st.info(_("There is nothing to compare yet. A comparison needs two runs."))
        first_steps()
        return
    if len(runs) < 2:
        chosen = [seen[0].id]
        with st.container(horizontal=True, vertical_alignment="center"):
            page_link("fine_tune", _("Start another run"), "rocket_launch")
            if st.button(_("Compare with the bundled runs"), icon=":material/add:", type="tertiary"):
                bundled = [open_replay(engine.store, SHIPPED[name].path) for name in ("ce", "ce-scl")]
                chosen = list(dict.fromkeys((*chosen, *bundled)))
                Compare.RUNS.put(chosen)
                st.rerun()
        Compare.RUNS.put(chosen)
    else:
        chosen = pick(engine.store, runs, head)
    if not chosen:
        st.info(_("Choose two to six runs to see what differs, their curves, and their maps side by side."))
        return
    if len(chosen) == 2:
        with head:
            pair_page(engine.store, engine.store.run(chosen[0]), engine.store.run(chosen[1]))
    names = dict(zip((run.id for run in runs), run_titles(runs), strict=True))
    draw_fragment(view, False, engine, {run_id: names[run_id] for run_id in chosen})


def view(engine: Engine, names: Mapping[str, str]) -> None:
    """Draw the comparison of runs or, for a single run, the form of a twin. It is a fragment. Args: names: by id."""
    try:
        runs = load_compared(engine.store, names)
    except PlaygroundError as error:
        st.warning(escaped(str(error)))
        return
    going = [one for one in runs if not one.run.status.ended]
    if any(one.run.status == Status.QUEUED for one in going):
        engine.dispatch()
    for one in going:
        with st.container(horizontal=True, vertical_alignment="center"):
            status_badge(one.run)
            page_link("fine_tune", escaped(one.name), query={"run": one.run.id}, width="content")
            step, steps = f"{one.run.last_step:,}", f"{one.run.steps:,}"
            st.caption(_("step {step} of {steps}", step=step, steps=steps), width="content")
    busy, shown = False, "twin"
    with show_errors(st.warning):
        if len(runs) == 1:
            alone = _(
                "A comparison needs two runs. Add another, or make a twin: the same run with one setting changed."
            )
            st.info(alone)
        else:
            row = st.container(horizontal=True, gap="medium")
            with row:
                # Translators: a noun.
                shown = bound_segments(_("View"), Compare.SHOW, VIEWS, wrap=None)
        match shown:
            case "scores":
                busy = overview(engine.store, runs)
            case "maps":
                busy = _maps(runs, row)
            case "curves":
                curves(engine.store, runs)
            case "twin":
                twin_form(engine, runs)
    poll_while(busy or bool(going))


def _maps(runs: Sequence[Compared], row: DeltaGenerator) -> bool:
    waiting = [escaped(one.name) for one in runs if one.frames is None]
    if waiting:
        runs_waiting = join_list(waiting)
        st.caption(_("No frames yet: {runs}. The first appears right after a run's first step.", runs=runs_waiting))
    if len(waiting) == len(runs):
        return False
    shown = [RunFrames(one.name, one.frames) for one in runs if one.frames is not None]
    wanted, colour = choose_map(row)
    spec, maps, busy = maps_of(shown, wanted)
    examples = link_examples(tuple(one.frames for one in shown))
    panels, turns = panels_of(shown, examples, spec, maps, colour)
    # The maps keep their last state, or that of the address.
    asked = state.session_value(SELECTION_KEY, lambda: None)
    state.forget(SELECTION_KEY)
    steps = sorted({step for panel in panels for step in panel.steps})
    key = f"compare.map.{'.'.join(one.frames.run.id for one in shown)}"
    known = map_now(key) or MapState(
        ids_from_text(Compare.SELECTED.text or "", examples.known),
        {str(step): step for step in steps}.get(Compare.FRAME.text or ""),
        view=Compare.CAMERAS.text or "",
    )
    on_map = map_view(
        panels,
        key=key,
        height=ONE_ROW if len(panels) <= MOST_IN_A_ROW else LOWER,
        description=_(
            "Maps of {runs} side by side, linked by their common examples.",
            runs=ngettext("{count} run", "{count} runs", len(panels)),
        ),
        frame=known.frame,
        selected=known.selected if asked is None else asked,
        view=known.view,
        name="compare",
    )
    Compare.FRAME.put(on_map.frame, steps[-1] if steps else None)
    Compare.SELECTED.put(ids_as_text(on_map.selected))
    Compare.CAMERAS.put(on_map.view)
    if separation := separation_over_seeds(shown):
        st.markdown(separation)
    st.caption(about(shown, spec, wanted, turns, colour))
    for one in shown:
        if whose := predictions_of(one.frames):
            st.caption(join_label(escaped(one.name), whose))
    _selection(shown, examples, on_map.selected, on_map.frame)
    pair(shown, examples)
    return busy


def _selection(runs: Sequence[RunFrames], examples: Linked, ids: Sequence[int], step: int | None) -> None:
    """Draw the selected examples, or explain how to select some. Raises: StoreError."""
    chosen = [i for i in ids if i in examples.known]
    if not chosen:
        st.caption(
            _(
                "Click a point, or drag a box or lasso around several, to read their texts and each run's "
                "predictions. Hold Shift to add to the selection."
            )
        )
        return
    rows, records = _rows(runs, examples, chosen, step)
    count = f"{len(chosen):,}"
    if len(chosen) > MOST_ROWS:
        st.markdown(_("**{count} selected**, the first {shown} shown", count=count, shown=f"{MOST_ROWS:,}"))
    else:
        st.markdown(_("**{count} selected**", count=count))
    table = pd.DataFrame(rows[:MOST_ROWS])
    st.dataframe(
        table,
        hide_index=True,
        height=min(420, 38 + 35 * len(table)),
        key="compare.selected",
        column_config={
            "Text": st.column_config.TextColumn(_("Text"), width="large"),
            "Label": st.column_config.TextColumn(_("Label"), width="small"),
            # Translators: a noun, a part of a data set.
            "Split": st.column_config.TextColumn(_("Split"), width="small"),
        },
    )
    st.caption(_("For each run: ✓ right or ✗ wrong, its prediction and confidence, at the frame shown on its map."))
    csv_button(_("Selection as CSV"), lambda: csv_file(records), "selection.csv", key="compare.selection.csv")


def _rows(
    runs: Sequence[RunFrames], examples: Linked, ids: Sequence[int], step: int | None
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the selected examples, with each run's prediction, as rows of the table and of the file.

    Raises: StoreError.
    """
    scores: list[ExampleScores | None] = []  # per run, at the frame shown on its map
    for _name, frames in runs:
        at = frames.numbers[-1] if step is None else frame_at(frames.numbers, step)
        scores.append(None if at is None else run_reads.scores(frames, at))
    rows, records = [], []
    for i in ids:
        run = next(number for number, rows_of in enumerate(examples.rows) if i in rows_of)
        probe, place = runs[run].frames.probe, examples.rows[run][i]
        text, label = probe.texts[place], probe.classes[probe.labels[place]]
        split = probe.splits[place] if probe.splits else VALIDATION
        row, record = {"Text": text, "Label": label}, {"text": text, "label": label, "split": split}
        for (name, frames), found, rows_of in zip(runs, scores, examples.rows, strict=True):
            said, prediction, confidence = "–", "", ""
            if found is not None and (at := rows_of.get(i)) is not None:
                prediction, share = frames.probe.classes[found.predicted[at]], float(found.confidence[at])
                said = f"{'✓' if found.correct[at] else '✗'} {prediction} {percent(share)}"
                confidence = f"{share:.6f}"
            row[name] = said
            record |= {f"{name}: prediction": prediction, f"{name}: confidence": confidence}
        rows.append(row | {"Split": _(SPLITS[split])})
        records.append(record)
    return rows, records


state.require_app()
page()
