"""Deleting an experiment, and bringing it back."""

from __future__ import annotations

import time

import streamlit as st

from core.errors import PlaygroundError
from core.language import _
from core.store import Experiment, ExperimentTable
from core.store.store import UNDO_S
from pages.ui import state
from pages.ui.address import Experiments
from pages.ui.bound import forget
from pages.ui.controls import leave_notice
from pages.ui.parts import escaped

# When an experiment was deleted, its id and its title.
NONE_DISCARDED: tuple[float, str, str] = (0.0, "", "")
DISCARDED = "experiment.discarded"


def discard_with_undo(table: ExperimentTable, experiment: Experiment) -> None:
    """Take an experiment out of the list at once, and remember it for the undo."""
    table.discard(experiment.id)
    state.remember(DISCARDED, (time.time(), experiment.id, experiment.title))
    forget([*Experiments.of("experiment"), Experiments.EXPERIMENT])
    st.rerun(scope="app")


def offer_experiment_undo(table: ExperimentTable) -> None:
    """Say what was deleted, and bring it back when that is asked for."""
    since, experiment_id, title = state.remembered(DISCARDED, lambda: NONE_DISCARDED)
    if not experiment_id or time.time() - since > UNDO_S:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        said = _("{experiment} is deleted; its runs are still there.", experiment=escaped(title))
        st.caption(said, width="content")
        if st.button(_("Undo"), icon=":material/undo:", key="experiment.undo"):
            state.forget(DISCARDED)
            try:
                table.restore(experiment_id)
            except PlaygroundError as error:
                leave_notice(str(error))
            st.rerun()
