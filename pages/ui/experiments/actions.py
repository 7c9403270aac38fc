"""What may be done with an experiment: stop, resume, more seeds, another name, delete with an undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from core.errors import PlaygroundError
from core.experiments.design import MOST_SEEDS, Design
from core.experiments.lifecycle import missing
from core.quantities import counted
from core.store import Experiment, ExperimentRun
from core.store.names import NAME_CHARS
from core.workers import Engine
from pages.ui.controls import leave_notice
from pages.ui.experiments.reads import open_experiments
from pages.ui.experiments.undo import discard_with_undo
from pages.ui.parts import escaped


def actions(
    engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun], *, going: bool
) -> None:
    """The experiment's name, and what may be done with it. Args: going: whether more comes by itself."""
    found = open_experiments(engine)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escaped(experiment.title), anchor=False, width="content")
        st.space("stretch")
        if going and st.button("Stop", icon=":material/stop:", key="experiment.stop"):
            _ask(lambda: found.stop(experiment.id))
        resumable = any(run.status is None or run.status.resumable for run in runs)
        if (
            not going
            and (resumable or missing(design, runs))
            and st.button("Resume", icon=":material/play_arrow:", key="experiment.resume")
        ):
            _ask(lambda: found.resume(experiment.id))
        _more_seeds(engine, experiment, design)
        _rename(engine, experiment)
        if not going and st.button("Delete", icon=":material/delete:", key="experiment.delete", help="Its runs stay."):
            discard_with_undo(found.table, experiment)


def _more_seeds(engine: Engine, experiment: Experiment, design: Design) -> None:
    with st.popover("Add seeds", icon=":material/add:"), st.form("experiment.seeds.form", border=False):
        left = MOST_SEEDS - len(design.seeds)
        more = st.number_input("More seeds", 1, max(1, left), min(5, max(1, left)), help="For every cell.")
        st.caption(f"There are {len(design.seeds)}; each more adds {counted(len(design.cells), 'run')}.")
        if st.form_submit_button("Add", type="primary", disabled=left < 1):
            _ask(lambda: open_experiments(engine).add_seeds(experiment.id, int(more)))


def _rename(engine: Engine, experiment: Experiment) -> None:
    with st.popover("Rename", icon=":material/edit:"), st.form("experiment.name.form", border=False):
        name = st.text_input(
            "Name", experiment.name, max_chars=NAME_CHARS, placeholder=f"Experiment {experiment.number}"
        )
        if st.form_submit_button("Save", type="primary"):
            _ask(lambda: open_experiments(engine).table.rename(experiment.id, name))


def _ask(action: Callable[[], object]) -> None:
    """Do it, say in a sentence why it cannot be done, and draw the page again."""
    try:
        action()
    except PlaygroundError as error:
        leave_notice(str(error))
    st.rerun()
