"""Experiments: seeds, grids and the protocols of the papers, with paired statistics."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from statistics import mean
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.artifacts.waiting_time import remaining_time
from core.errors import PlaygroundError
from core.events import TEST, VALIDATION
from core.experiments.design import MOST_SEEDS, Design, axis_title
from core.experiments.lifecycle import find_missing_runs
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import levels_figure
from core.experiments.result_table import in_phrase
from core.experiments.results import COSTS, OF_VECTORS, SPLITS, measures_of, usual_measure
from core.experiments.shared_settings import shared_settings
from core.experiments.surface import full_runs
from core.experiments.vectors import VECTORS, unmeasured, vectors_request
from core.messages import N_, Text, _, join_label, join_list, ngettext
from core.parameters import Parameter
from core.quantities import PERCENT_CELLS, hundredths
from core.settings import LOCAL, settings
from core.store import Experiment, ExperimentRun, Status, Store
from core.store.names import NAME_CHARS
from core.workers import Engine
from core.workers.limits import most_of_visitor
from core.workers.machine import slots
from pages.ui import reads, state
from pages.ui.address import Experiments
from pages.ui.bound import bound_choice, bound_segments, forget
from pages.ui.compare.picking import group_name
from pages.ui.controls import offer_undo, run_action, show_notice
from pages.ui.experiments.results import chart_view, map_view, report_view, results_of, table_view
from pages.ui.experiments.set_up import GRID, draw_published, set_up
from pages.ui.experiments.surface import draw_findings, draw_maps, start_card
from pages.ui.parameter_widget import begin_fields, field_problem, number_field
from pages.ui.parts import duration, escaped, in_columns, page_head, tab_title
from pages.ui.visitor import owner_name, visitor
from pages.ui.waiting import ensure_job

POLL_S, IDLE_POLL_S = 2.0, 15.0
# Key of a flag: whether vectors were being measured at the last refresh.
MEASURING = "experiment.measuring"
SHOWN = {"map": N_("Heat map"), "chart": N_("Chart"), "table": N_("Table"), "report": N_("Report")}


def page() -> None:
    engine = reads.open_engine()
    head = page_head(_("Experiments"))
    table = reads.open_experiments(engine).table
    table.purge_discarded()

    def find(text: str) -> str | None:
        with suppress(PlaygroundError):
            return table.find(text)
        return None

    if experiment_id := Experiments.EXPERIMENT.read(find, ""):
        experiment_view(engine, experiment_id, head)
        return
    if name := Experiments.NEW.choice([GRID, *PROTOCOLS], ""):
        set_up(engine, name, head)
        return
    show_notice()
    words = N_("Deleted {name}; its runs are kept. You can undo this for {minutes}.")
    offer_undo(words, table.discarded(), table.restore)
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
    st.subheader(_("Protocols from papers and from the project's notes"))
    for card, protocol in in_columns(PROTOCOLS.values()):
        with card:
            design = protocol.design()
            st.markdown(f"**{escaped(_(protocol.label))}**  \n{escaped(_(protocol.question))}")
            cells = ngettext("{count} cell", "{count} cells", len(design.cells))
            st.caption(f"{cells} × {ngettext('{count} seed', '{count} seeds', len(design.seeds))}")
            _begin(_("Set up"), protocol.name)


def _table(engine: Engine, there: list[Experiment]) -> None:
    table = reads.open_experiments(engine).table
    rows = []
    for one in there:
        design, runs = reads.design_of(one), table.runs(one.id)
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


def experiment_view(engine: Engine, experiment_id: str, head: DeltaGenerator) -> None:
    """Draw one experiment. Refresh often while its runs are active, otherwise rarely: other users may change it."""
    table = reads.open_experiments(engine).table
    experiment = table.experiment(experiment_id)
    runs, design = table.runs(experiment_id), reads.design_of(experiment)
    tab_title(experiment.title, _("Experiments"))
    if head.button(_("All experiments"), icon=":material/arrow_back:", type="tertiary"):
        forget([*Experiments.of("experiment"), Experiments.EXPERIMENT])
        st.rerun()
    polling = _has_unfinished_runs(experiment, design, runs) or state.session_value(MEASURING, bool)
    st.fragment(_view, run_every=POLL_S if polling else IDLE_POLL_S)(engine, experiment_id, polling)


def _has_unfinished_runs(experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> bool:
    """Return whether runs are unfinished or still to be queued."""
    return any(not run.ended for run in runs) or (experiment.wanted and bool(find_missing_runs(design, runs)))


def _view(engine: Engine, experiment_id: str, polling: bool) -> None:
    found = reads.open_experiments(engine)
    try:
        experiment = found.table.experiment(experiment_id)
    except PlaygroundError as error:
        st.error(escaped(str(error)))
        return
    design, runs = reads.design_of(experiment), found.table.runs(experiment_id)
    found.revive(experiment, design, runs)
    engine.dispatch()
    actions(engine, experiment, design, runs, going=_has_unfinished_runs(experiment, design, runs))
    said = " · ".join(chain(*shared_settings(design.base, design.axes)))
    varied = join_list(in_phrase(axis_title(axis, design.base)) for axis in design.axes)
    about = _("{settings}; varied: {axes}.", settings=said, axes=varied) if varied else _("{said}.", said=said)
    st.caption(escaped(about))
    show_notice()
    _progress(engine.store, experiment, design, runs)
    protocol = PROTOCOLS.get(design.protocol)
    surface = design.base.on_shared_trunk
    show, measure, split = _selection(design, VALIDATION if surface else TEST)
    everything_ended = len(runs) >= design.runs and all(run.ended for run in runs)
    full = full_runs(engine, design) if surface and everything_ended else []
    withheld = draw_findings(engine.store, design, runs, full) if surface else ()
    results = replace(results_of(engine.store, experiment, runs, measure, split), withheld=measure in withheld)
    measuring, drawn = False, surface or (show == "chart" and levels_figure([results]) is not None)
    # Accuracy and separation are drawn over the same setting.
    second = "accuracy" if measure in OF_VECTORS else "silhouette"
    beside = results_of(engine.store, experiment, runs, second, VALIDATION) if drawn else None
    above, shown, below = st.container(), st.container(key="experiment_shown"), st.container()
    if (measure in OF_VECTORS or (drawn and everything_ended)) and (
        lacking := unmeasured(engine.store, [*runs, *full])
    ):
        newest = max(run.ended_at or 0.0 for run in lacking)
        with below if drawn else above:  # what is drawn does not wait for it
            measuring = ensure_job(
                VECTORS,
                vectors_request(experiment.id, full),
                N_("Computing silhouette and other measures of the vectors"),
                since=newest,
            )
    state.remember(MEASURING, measuring)
    if polling != (measuring or _has_unfinished_runs(experiment, design, runs)):
        st.rerun()
    with shown:
        match show:
            case "chart":
                chart_view(experiment, results, beside)
            case "table":
                table_view(experiment, results)
            case "report":
                report_view(engine, experiment, results)
                return  # the report includes the protocol
            case _:
                maps = partial(draw_maps, engine.store, experiment.id, design, runs) if surface else None
                map_view(engine, results, runs, experiment, maps=maps, beside=beside)
    if protocol is not None:
        with st.container(key="experiment_published"):
            draw_published(protocol)


def _selection(design: Design, usual_split: str) -> tuple[str, str, str]:
    """Draw the choices of view, measure and split, and return them."""
    protocol = PROTOCOLS.get(design.protocol)
    usual = (protocol.measure, protocol.split) if protocol else (usual_measure(design), usual_split)
    if design.base.on_shared_trunk:  # the test split is not scored
        usual = (usual[0], usual_split)
    look: dict[str, Any] = {"label_visibility": "collapsed", "width": 200}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        show = bound_segments(_("Show as"), Experiments.SHOW, SHOWN, "map")
        st.space("stretch")
        measures = {name: _(one.label) for name, one in measures_of(design).items()}
        # Translators: a noun, what is measured.
        measure = bound_choice(_("Measure"), Experiments.MEASURE, measures, usual[0], **look)
        # Translators: a noun, a part of a data set.
        split_label, splits = _("Split"), {name: _(label) for name, label in SPLITS.items()}
        if measure in COSTS:
            return show, measure, VALIDATION
        if measure not in OF_VECTORS:
            return show, measure, bound_choice(split_label, Experiments.SPLIT, splits, usual[1], **look)
        st.selectbox(split_label, [splits[VALIDATION]], disabled=True, key="experiment.split.vectors", **look)
        return show, measure, VALIDATION


def _progress(store: Store, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
    """Draw how many runs have finished, the time left, and the reasons why runs failed."""
    finished = [run for run in runs if run.status == Status.FINISHED]
    words = [
        _(
            "{finished} of {runs} finished",
            finished=f"{len(finished):,}",
            runs=ngettext("{count} run", "{count} runs", design.runs),
        )
    ]
    going = [run for run in runs if run.status is not None and run.status.active]
    waiting = sum(run.status == Status.QUEUED for run in runs)
    words += [_("{count} running", count=len(going))] if going else []
    words += [_("{count} waiting", count=f"{waiting:,}")] if waiting else []
    early = sum(run.ended_early for run in runs)
    words += [_("{count} ended early", count=early)] if early else []
    failed = sum(run.status == Status.FAILED for run in runs)
    words += [_("{count} failed", count=failed)] if failed else []
    unmade = len(find_missing_runs(design, runs))
    if unmade and experiment.wanted:
        words.append(_("{count} not queued yet", count=f"{unmade:,}"))
    if not experiment.wanted and len(finished) < design.runs:
        words.append(_("stopped"))
    if finished and experiment.wanted:
        unmade_s = unmade * mean(run.seconds for run in finished)
        on_the_way = {run.run_id for run in runs if run.run_id and run.status is not None and not run.status.ended}
        if settings().engine == LOCAL and (on_the_way or unmade_s):  # the capacity of a cluster is unknown
            left = remaining_time(store, on_the_way, len(slots()), most_of_visitor())
            if left.seconds is not None and left.others:
                words.append(ngettext("{count} other run starts first", "{count} other runs start first", left.others))
            if left.seconds is not None:
                time = duration(max(1.0, left.seconds + unmade_s / len(slots())))
                words.append(_("about {time} left", time=time))
    if len(finished) + early == design.runs:
        st.caption(" · ".join(words))
    else:
        st.progress((len(finished) + early) / design.runs, " · ".join(words))
    cells = {cell.number: cell for cell in (*design.source_cells, *design.cells)}
    reasons: dict[Text, list[str]] = {}  # why runs failed or were not created, each reason once
    for run in runs:
        if reason := run.problem or (run.message if run.status == Status.FAILED else None):
            title = design.spoken_title(cells[run.cell])
            reasons.setdefault(reason, []).append(_("{cell}, seed {seed}", cell=title, seed=run.seed))
    for reason, where in reasons.items():
        st.warning(escaped(join_label(group_name(where), str(reason))))


def actions(
    engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun], *, going: bool
) -> None:
    """Draw the experiment's name and its actions. Args: going: whether runs are unfinished or still to be queued."""
    found = reads.open_experiments(engine)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escaped(experiment.title), anchor=False, width="content")
        st.space("stretch")
        me = visitor()
        if settings().shared and experiment.owner != me.id:
            owner = escaped(owner_name(engine.store, experiment.owner))
            st.caption(_("{visitor}'s experiment", visitor=owner), width="content")
        if not me.may_change(experiment.owner):
            return
        if going and st.button(_("Stop"), icon=":material/stop:", key="experiment.stop"):
            run_action(lambda: found.stop(experiment.id))
        resumable = any(run.status is None or run.may_go_on for run in runs)
        if (
            not going
            and (resumable or find_missing_runs(design, runs))
            and st.button(_("Resume"), icon=":material/play_arrow:", key="experiment.resume")
        ):
            run_action(lambda: found.resume(experiment.id))
        _more_seeds(engine, experiment, design, runs)
        with st.popover(_("Rename"), icon=":material/edit:"), st.form("experiment.name.form", border=False):
            placeholder = _("Experiment {number}", number=experiment.number)
            name = st.text_input(_("Name"), experiment.name, max_chars=NAME_CHARS, placeholder=placeholder)
            if st.form_submit_button(_("Save"), type="primary"):
                run_action(lambda: found.table.rename(experiment.id, name))
        if not going and st.button(
            _("Delete"), icon=":material/delete:", key="experiment.delete", help=_("Its runs are kept.")
        ):
            found.table.discard(experiment.id)
            forget([*Experiments.of("experiment"), Experiments.EXPERIMENT])
            st.rerun(scope="app")


def _more_seeds(engine: Engine, experiment: Experiment, design: Design, runs: Sequence[ExperimentRun]) -> None:
    with st.popover(_("Add seeds"), icon=":material/add:"):
        left = MOST_SEEDS - len(design.seeds)
        if left < 1:
            st.caption(_("This is the maximum of {most} seeds.", most=MOST_SEEDS))
            return
        field = Parameter("more", N_("More seeds"), 1, N_("For every cell."), kind="integer", low=1, high=left)
        begin_fields()
        more = int(number_field(st, field, min(5, left), key=f"experiment.more.{experiment.id}"))
        new = more * (len(design.cells) + len(design.sources))
        seconds = [run.seconds for run in runs if run.status == Status.FINISHED]
        added = {"seeds": len(design.seeds), "runs": ngettext("{count} run", "{count} runs", new)}
        if seconds:
            # All cells of a seed of a surface run at once, in one slot.
            at_once = len(design.cells) * min(len(slots()), more) if design.base.on_shared_trunk else len(slots())
            takes = duration(new * mean(seconds) / at_once)
            st.caption(_("There are {seeds} now. This adds {runs}, about {time}.", time=takes, **added))
        else:
            st.caption(_("There are {seeds} now. This adds {runs}.", **added))
        if st.button(_("Add seeds"), type="primary", disabled=field_problem() is not None, key="experiment.add"):
            run_action(lambda: reads.open_experiments(engine).add_seeds(experiment.id, more))


state.require_app()
page()
