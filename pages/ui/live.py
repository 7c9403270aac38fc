"""The live page of a run: progress, knobs, map, verdict and curves, redrawn until the run ends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median

import streamlit as st

from core.errors import PlaygroundError
from core.events import Step
from core.messages import _
from core.store import Status
from core.workers import Engine
from pages.ui.controls import draw_files, draw_links
from pages.ui.knobs import branch_form, draw_knobs
from pages.ui.live_charts import CURVES, METHODS, draw_curves, draw_map, draw_verdict
from pages.ui.live_progress import draw_header, draw_progress, draw_scores, waiting_words
from pages.ui.map_view import map_now
from pages.ui.parts import escaped
from pages.ui.reads import run_now
from pages.ui.waiting import rerun_later

# Poll fast until the first step, which the visitor waits for; later, a delay of a second is short enough.
WAITING_POLL_S = 0.3
# A redraw takes 0.25 s of one core, mostly in the browser, and competes with training on a laptop.
POLL_S, SLOWEST_POLL_S, RECENT_STEPS = 1.0, 3.0, 5
# Relative widths of the knobs, the map and the curves.
COLUMNS = (9, 26, 27)


def live_view(engine: Engine, run_id: str, *, polling: bool, waiting: bool) -> None:
    """Draw the page of one run. It is a fragment, repeated until the run ends and once more then."""
    began = time.thread_time()
    with st.container(key="live"):
        steps = _draw(engine, run_id, polling, waiting)
    if polling:
        # Poll no faster than steps arrive: most other redraws would show nothing new.
        recent = [step.values["step_s"] for step in steps[-RECENT_STEPS:] if "step_s" in step.values]
        pace_s = min(SLOWEST_POLL_S, max(POLL_S, median(recent))) if recent else POLL_S
        cost_s = time.thread_time() - began
        rerun_later(WAITING_POLL_S if waiting else pace_s, key="live.beat", cost_s=cost_s)


def _draw(engine: Engine, run_id: str, polling: bool, waiting: bool) -> Sequence[Step]:
    """Draw the page once. Returns: the steps that are drawn."""
    try:
        run = engine.store.run(run_id)
    except PlaygroundError as error:
        st.error(escaped(str(error)))
        return ()
    if polling and (run.status.ended or (waiting and run.probe is not None)):
        st.rerun()  # restart the fragment without a timer, or at the slower pace
    if run.status == Status.QUEUED:
        engine.dispatch()
    now = run_now(engine.store, run)
    with st.container(gap="xsmall", key="run_head"):
        draw_header(engine, run)
        with st.container(gap="xxsmall", key="run_progress"):
            draw_progress(now)
    if run.probe is None:
        st.caption(waiting_words(engine.store, run))
        return now.steps
    rail, left, right = st.columns(COLUMNS)
    with rail, st.container(key="live_rail"):
        if run.status.ended:
            with st.container(gap="xxsmall", key="next_steps"):
                draw_links(run)
        else:
            draw_knobs(engine, run, now.knobs)
        on_map = map_now(f"live.map.{run.id}")
        branch_form(engine, run, run.steps if on_map is None or on_map.frame is None else on_map.frame)
        method = _choice(_("Map"), METHODS, "live.method")
        about = _(
            "Smooth: mean of about the last 10 steps, geometric on a logarithmic axis. Raw values are faint, and shown "
            "on hover."
        )
        curves = _choice(_("Curves"), CURVES, "live.how", about)
    with left:
        with st.container(horizontal=True):
            draw_scores(now)
        draw_map(now, method)
        with st.container(key="live_verdict"):
            draw_verdict(now)
    with right:
        draw_curves(now, curves)
        # Below the curves, because their height is fixed, while the text below the map varies.
        draw_files(engine, run)
    return now.steps


def _choice(label: str, options: Mapping[str, str], key: str, about: str | None = None) -> str:
    """Draw a choice, the first option by default, and return the picked option."""
    names, words = list(options), {name: _(text) for name, text in options.items()}
    return st.segmented_control(
        label, names, default=names[0], format_func=words.__getitem__, required=True, key=key, help=about
    )
