"""Experiments: seeds, grids and the protocols of the papers, with paired statistics."""

from __future__ import annotations

from datetime import datetime

import pandas as pd
import streamlit as st

from core.errors import PlaygroundError
from core.experiments.protocols.registry import PROTOCOLS
from core.messages import _, ngettext
from core.quantities import PERCENT_CELLS, hundredths
from core.settings import settings
from core.store import Experiment, Status
from core.workers import Engine
from pages.ui import reads, state
from pages.ui.address import Experiments
from pages.ui.controls import offer_undo_of_experiments, show_notice
from pages.ui.experiments.reads import design_of, open_experiments
from pages.ui.experiments.set_up import GRID, set_up
from pages.ui.experiments.surface import start_card
from pages.ui.experiments.view import experiment_view
from pages.ui.parts import escaped, in_columns, page_head
from pages.ui.visitor import owner_name


def page() -> None:
    engine = reads.open_engine()
    head = page_head(_("Experiments"))
    table = open_experiments(engine).table
    table.purge_discarded()
    text = Experiments.EXPERIMENT.text
    if text is not None:
        try:
            experiment_id = table.find(text)
        except PlaygroundError:
            state.complain(Experiments.EXPERIMENT.name, text, Experiments.EXPERIMENT.problem)
            Experiments.EXPERIMENT.forget()
        else:
            experiment_view(engine, experiment_id, head)
            return
    name = Experiments.NEW.text
    if name == GRID or name in PROTOCOLS:
        set_up(engine, str(name), head)
        return
    if name is not None:
        state.complain(Experiments.NEW.name, name, Experiments.NEW.problem)
        Experiments.NEW.forget()
    show_notice()
    offer_undo_of_experiments(table)
    start_card(engine)
    there = table.experiments()
    if there:
        _table(engine, there)
        st.header(_("New experiment"))
    else:
        st.markdown(
            _(
                "One run is an anecdote. An experiment repeats the same settings under several seeds, varies one "
                "setting against another, or follows a paper's protocol, and tests which differences exceed chance."
            )
        )
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="experiment.grid"):
        title = _("Grid or seeds")
        about = _("Repeat runs over several seeds, and optionally vary one or two settings.")
        st.markdown(f"**{title}**  \n{about}", width="stretch")
        _begin(_("Set up a grid"), GRID)
    st.subheader(_("Protocols from papers and unpublished notes"))
    for card, protocol in in_columns(PROTOCOLS.values()):
        with card:
            design = protocol.design()
            st.markdown(f"**{escaped(_(protocol.label))}**  \n{escaped(_(protocol.question))}")
            cells = ngettext("{count} cell", "{count} cells", len(design.cells))
            st.caption(f"{cells} × {ngettext('{count} seed', '{count} seeds', len(design.seeds))}")
            _begin(_("Set up"), protocol.name)


def _table(engine: Engine, there: list[Experiment]) -> None:
    table = open_experiments(engine).table
    rows = []
    for one in there:
        design, runs = design_of(one), table.runs(one.id)
        finished = sum(run.status == Status.FINISHED for run in runs)
        if finished == design.runs or (one.wanted and all(run.ended for run in runs)):
            status = _("finished")
        else:
            status = _("running") if one.wanted else _("stopped")
        rows.append(
            {
                "Experiment": one.title,
                "By": owner_name(engine.store, one.owner),
                _("Protocol"): _(PROTOCOLS[design.protocol].label) if design.protocol in PROTOCOLS else "",
                _("Cells"): len(design.cells),
                _("Seeds"): len(design.seeds),
                "Finished": hundredths([finished / design.runs])[0],
                _("Runs"): _("{finished} of {total}", finished=f"{finished:,}", total=f"{design.runs:,}"),
                _("Status"): status,
                "Created": datetime.fromtimestamp(one.created_at),
            }
        )
    picked = st.dataframe(
        pd.DataFrame(rows).drop(columns=[] if settings().shared else ["By"]),
        hide_index=True,
        placeholder="",
        on_select="rerun",
        selection_mode="single-cell",
        height="content",
        key=f"experiments.table.{hash(tuple(one.id for one in there))}",
        column_config={
            "Experiment": st.column_config.TextColumn(_("Experiment"), width="medium"),
            # Translators: who started an experiment.
            "By": st.column_config.TextColumn(_("By"), width="small", help=_("Visitor who started it")),
            "Finished": st.column_config.ProgressColumn(
                _("Finished"), format=PERCENT_CELLS, min_value=0, max_value=100, width="small"
            ),
            # Translators: a day and a time in the letters of moment.js: day, month, hours and minutes.
            "Created": st.column_config.DatetimeColumn(_("Created"), format=_("D MMM, HH:mm")),
        },
    )
    for row, _column in picked.selection.cells:
        if row < len(there):
            Experiments.EXPERIMENT.put(there[row].id)
            st.rerun()
    st.caption(_("Click an experiment to open it."))


def _begin(label: str, name: str) -> None:
    if st.button(label, key=f"begin.{name}"):
        Experiments.NEW.put(name)
        st.rerun()


state.require_app()
page()
