"""Choosing one run to look at."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.config.describe import objective_label
from core.messages import _
from core.store import RunRecord, RunSummary, Store
from core.tasks.task_label import task_label
from pages.ui import state
from pages.ui.parts import run_titles


def pick_run(store: Store, runs: Sequence[RunSummary], named: RunRecord | None, *, key: str) -> RunRecord:
    """Draw the runs to choose from, the one that the address names chosen at first; `key` is the page's own."""
    labels = {
        run.id: f"{title} · {task_label(run.config)} · {objective_label(run.effective)}"
        for run, title in zip(runs, run_titles(runs), strict=True)
    }
    first = named.id if named is not None and named.id in labels else runs[0].id
    if state.widget_value(key) not in (None, *labels):  # it was deleted meanwhile
        state.set_widget(key, first)
    # Once it was drawn the list counts: a choice that follows soon upon another still brings the address of the first.
    place = list(labels).index(first)
    picked = st.selectbox(
        _("Run"),
        list(labels),
        place,
        format_func=labels.__getitem__,
        key=key,
        label_visibility="collapsed",
        width="stretch",
    )
    return store.run(picked)
