"""Choosing one run to look at."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.store import RunRecord, RunSummary, Store
from pages.ui.parts import objective_label, task_label


def pick_run(store: Store, runs: Sequence[RunSummary], named: RunRecord | None) -> RunRecord:
    """Draw the runs to choose from, the named one chosen at first."""
    ids = [run.id for run in runs]
    by_id = {run.id: run for run in runs}
    picked = st.selectbox(
        "Run",
        ids,
        index=ids.index(named.id) if named and named.id in ids else 0,
        format_func=lambda i: f"{by_id[i].title} · {task_label(by_id[i].config)} · {objective_label(by_id[i].config)}",
    )
    return store.run(picked)
