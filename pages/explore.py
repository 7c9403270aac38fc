"""Explore: the map of one run, frame by frame, with its texts, neighbours and forces."""

from __future__ import annotations

import streamlit as st

from core.artifacts.layers import layer_steps
from core.artifacts.weights import weight_steps
from core.messages import _
from pages.ui import reads, state
from pages.ui.address import Explore
from pages.ui.bound import forget, pick_run
from pages.ui.explore.view import view
from pages.ui.parts import first_steps, page_head, show_errors, tab_title
from pages.ui.waiting import draw_fragment


def page() -> None:
    store = reads.open_engine().store
    head = page_head(_("Explore"))
    state.repeat_complaints(only=Explore.RUN.name)
    named = Explore.RUN.run(store)
    runs = [run for run in store.runs() if run.probe_known]
    if not runs:
        st.info(_("There is nothing to explore yet. A run can be explored from its first frame."))
        first_steps()
        return
    with head:
        run = pick_run(store, runs, named, key="explore.run")
    if Explore.RUN.text is not None and (named is None or named.id != run.id):
        forget(Explore.of("run"))
    Explore.RUN.put(run.id)
    tab_title(run.title, _("Explore"))
    if run.probe is None or not store.frame_steps(run.id):
        st.info(_("This run has no frames yet. The first appears right after the first step."))
        return
    steps_with_layers: list[int] = []  # computed already, or computable from stored weights
    with show_errors(st.warning):
        steps_with_layers = sorted({*weight_steps(store, run), *layer_steps(store.run_folder(run.id))})
    draw_fragment(view, run.status.active, store, run.id, steps_with_layers)


state.require_app()
page()
