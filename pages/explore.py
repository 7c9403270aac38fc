"""Explore: scrub the frames of one run, read its texts."""

from __future__ import annotations

import streamlit as st

from core.errors import StoreError
from core.figures.map import map_figure
from core.store import RunRecord, RunSummary, Store
from pages.ui import reads, state
from pages.ui.live_figure import live_figure
from pages.ui.parts import escaped, objective_label, task_label

PLAY_S = 0.6
MAP_HEIGHT = 620
MAX_TABLE_ROWS = 200
FRAME_KEY = "explore.frame"


def page() -> None:
    store = reads.open_engine().store
    st.title("Explore")
    named = state.run_in_url(store)
    runs = [run for run in store.runs() if run.probe_known]
    if not runs:
        st.info("There is nothing to explore yet. A run can be explored from its first frame on.")
        st.page_link("pages/fine_tune.py", label="Start a run", icon=":material/rocket_launch:")
        return
    run = _picked(store, runs, named)
    if named is not None and named.id != run.id:
        state.put_in_url(frame=None)
        state.set_widget(FRAME_KEY, None)
    state.put_in_url(run=run.id)
    frames = store.frame_steps(run.id)
    if run.probe is None or not frames:
        st.info("This run has no frames yet; the first comes right after its first step.")
        return
    playing = state.remembered("playing", lambda: False)
    st.fragment(_frame, run_every=PLAY_S if playing else None)(store, run, frames)


def _picked(store: Store, runs: list[RunSummary], named: RunRecord | None) -> RunRecord:
    ids = [run.id for run in runs]
    by_id = {run.id: run for run in runs}
    picked = st.selectbox(
        "Run",
        ids,
        index=ids.index(named.id) if named and named.id in ids else 0,
        format_func=lambda i: f"{by_id[i].title} · {task_label(by_id[i].config)} · {objective_label(by_id[i].config)}",
    )
    return store.run(picked)


def _frame(store: Store, run: RunRecord, frames: list[int]) -> None:
    assert run.probe is not None
    step = _scrub(frames)
    state.put_in_url(frame=step)
    scores = {e.step: e.values for e in store.evaluations(run.id) if e.split == "validation"}.get(step)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        try:
            points = reads.map_points(store, run, step)
        except StoreError as error:
            st.warning(escaped(str(error)))
            return
        extent = reads.extent(store, run, run.id, run.attempt, tuple(frames))
        figure = map_figure(points, run.probe, reads.hovers(run.id, run.probe), extent, revision=run.id)
        selected = live_figure(
            figure,
            key=f"explore.map.{run.id}",
            height=MAP_HEIGHT,
            description=f"Map of {len(points)} validation texts at step {step}, coloured by label.",
            selectable=True,
        )
        st.caption(
            "Colour and symbol: label. First two principal components of the normalised vectors, each frame turned "
            "onto the one before. Hover to read; click, box or lasso to list."
        )
    with right:
        if scores:
            columns = st.columns(2)
            columns[0].metric("Validation accuracy", f"{scores['accuracy']:.1%}")
            columns[1].metric("Effective rank", f"{scores['effective_rank']:.1f}")
        _texts(run, selected)


def _scrub(frames: list[int]) -> int:
    """The frame that is shown: from the slider, one further while playing."""
    playing = state.remembered("playing", lambda: False)
    if state.widget_value(FRAME_KEY) not in frames:
        state.set_widget(FRAME_KEY, state.frame_in_url(frames, default=frames[-1]))
    elif playing:
        following = frames.index(state.widget_value(FRAME_KEY)) + 1
        if following < len(frames):
            state.set_widget(FRAME_KEY, frames[following])
        else:
            state.remember("playing", False)
            st.rerun()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label, icon = ("Pause", ":material/pause:") if playing else ("Play", ":material/play_arrow:")
        if st.button(label, icon=icon, key="explore.play", disabled=len(frames) < 2):
            state.remember("playing", not playing)
            if not playing and state.widget_value(FRAME_KEY) == frames[-1]:
                state.remember("rewind", True)
            st.rerun()
        if state.remembered("rewind", lambda: False):
            state.forget("rewind")
            state.set_widget(FRAME_KEY, frames[0])
        if len(frames) == 1:
            st.caption(f"Step {frames[0]:,}, the only frame so far.")
            return frames[0]
        return int(st.select_slider("Step", frames, key=FRAME_KEY, format_func=lambda step: f"{step:,}"))


def _texts(run: RunRecord, selected: list[int]) -> None:
    assert run.probe is not None
    rows = [i for i, point in enumerate(run.probe.ids) if point in set(selected)]
    if not rows:
        st.caption(f"{len(run.probe.ids)} texts are on the map. Select some to read them here.")
        return
    st.markdown(f"**{len(rows)} selected**")
    st.dataframe(
        [{"Label": run.probe.classes[run.probe.labels[i]], "Text": run.probe.texts[i]} for i in rows[:MAX_TABLE_ROWS]],
        hide_index=True,
        column_config={"Label": st.column_config.TextColumn(width="small")},
    )


state.require_app()
page()
