"""What may be done with an experiment: stop, resume, more seeds, another name, delete with an undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

import streamlit as st

from core.errors import PlaygroundError
from core.experiments.design import MOST_SEEDS, Design
from core.experiments.lifecycle import missing
from core.messages import N_, _, ngettext
from core.parameters import Parameter
from core.settings import settings
from core.store import Experiment, ExperimentRun, Status
from core.store.names import NAME_CHARS
from core.workers import Engine
from core.workers.machine import slots
from pages.ui.address import Experiments
from pages.ui.bound import forget
from pages.ui.controls import leave_notice
from pages.ui.experiments.reads import open_experiments
from pages.ui.number_field import begin_fields, field_problem, number_field
from pages.ui.parts import duration, escaped
from pages.ui.visitor import visitor, whose

# How many more are offered.
USUAL_MORE = 5


def actions(
    engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun], *, going: bool
) -> None:
    """The experiment's name, and what may be done with it. Args: going: whether more comes by itself."""
    found = open_experiments(engine)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escaped(experiment.title), anchor=False, width="content")
        st.space("stretch")
        me = visitor()
        if settings().shared and experiment.owner != me.id:
            owner = escaped(whose(engine.store, experiment.owner))
            st.caption(_("Experiment of {visitor}", visitor=owner), width="content")
        if not me.may_change(experiment.owner):
            return
        if going and st.button(_("Stop"), icon=":material/stop:", key="experiment.stop"):
            _ask(lambda: found.stop(experiment.id))
        resumable = any(run.status is None or run.may_go_on for run in runs)
        if (
            not going
            and (resumable or missing(design, runs))
            and st.button(_("Resume"), icon=":material/play_arrow:", key="experiment.resume")
        ):
            _ask(lambda: found.resume(experiment.id))
        _more_seeds(engine, experiment, design, runs)
        _rename(engine, experiment)
        if not going and st.button(
            _("Delete"), icon=":material/delete:", key="experiment.delete", help=_("Its runs stay.")
        ):
            found.table.discard(experiment.id)
            forget([*Experiments.of("experiment"), Experiments.EXPERIMENT])
            st.rerun(scope="app")


def _more_seeds(engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
    with st.popover(_("Add seeds"), icon=":material/add:"):
        left = MOST_SEEDS - len(design.seeds)
        if left < 1:
            st.caption(_("There are {most} already, which is the most.", most=MOST_SEEDS))
            return
        field = Parameter("more", N_("More seeds"), 1, N_("For every cell."), kind="integer", low=1, high=left)
        begin_fields()
        more = int(number_field(st, field, min(USUAL_MORE, left), key=f"experiment.more.{experiment.id}"))
        st.caption(_what_seeds_add(design, runs, more))
        if st.button(_("Add them"), type="primary", disabled=field_problem() is not None, key="experiment.add"):
            _ask(lambda: open_experiments(engine).add_seeds(experiment.id, more))


def _what_seeds_add(design: Design, runs: Sequence[ExperimentRun], more: int) -> str:
    """How many runs, and how long they take where some have finished."""
    there, new = len(design.seeds), more * (len(design.cells) + len(design.sources))
    seconds = [run.seconds for run in runs if run.status == Status.FINISHED]
    if not seconds:
        return _(
            "There are {seeds} now. That adds {runs}.", seeds=there, runs=ngettext("{count} run", "{count} runs", new)
        )
    takes = duration(new * mean(seconds) / len(slots()))
    return _(
        "There are {seeds} now. That adds {runs}, about {time}.",
        seeds=there,
        runs=ngettext("{count} run", "{count} runs", new),
        time=takes,
    )


def _rename(engine: Engine, experiment: Experiment) -> None:
    with st.popover(_("Rename"), icon=":material/edit:"), st.form("experiment.name.form", border=False):
        placeholder = _("Experiment {number}", number=experiment.number)
        name = st.text_input(_("Name"), experiment.name, max_chars=NAME_CHARS, placeholder=placeholder)
        if st.form_submit_button(_("Save"), type="primary"):
            _ask(lambda: open_experiments(engine).table.rename(experiment.id, name))


def _ask(action: Callable[[], object]) -> None:
    """Do it, say in a sentence why it cannot be done, and draw the page again."""
    try:
        action()
    except PlaygroundError as error:
        leave_notice(str(error))
    st.rerun()
