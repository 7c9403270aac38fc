"""Compare: two to six runs side by side."""

from __future__ import annotations

import streamlit as st

from core.artifacts.replay import open_replay
from core.artifacts.shipped import SHIPPED
from core.messages import _
from pages.ui import reads, state
from pages.ui.address import Compare
from pages.ui.compare.picking import pick
from pages.ui.compare.view import view
from pages.ui.controls import pair_page
from pages.ui.parts import first_steps, page_head, run_titles
from pages.ui.waiting import draw_fragment


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
            st.page_link("pages/fine_tune.py", label=_("Start another run"), icon=":material/rocket_launch:")
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


state.require_app()
page()
