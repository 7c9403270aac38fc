"""Runs: list all runs; open, resume, stop or delete them, and read their logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from core.advice.score_source import classifier_learns_from, classifier_note, is_first_note, scored_evaluations
from core.artifacts.replay import TAG
from core.artifacts.waiting_time import places
from core.config.describe import objective_label, row_labels
from core.events import Evaluation
from core.figures.run_curves import MOST_RUNS
from core.messages import _, ngettext, pgettext, sentences
from core.quantities import PERCENT_CELLS, hundredths
from core.settings import settings
from core.store import RunSummary, Status, Store
from core.store.budget import GB, dropped_sentence
from core.store.records import PEAK_MEMORY
from core.store.sizes import RunSize, size_text
from core.tasks.registry import task_label
from core.workers import Engine
from core.workers.limits import most_of_visitor
from core.workers.machine import slots
from pages.ui import reads, state
from pages.ui.address import Runs
from pages.ui.bound import bound_several, bound_switch
from pages.ui.controls import (
    delete_button,
    draw_files,
    draw_links,
    export_menu,
    import_menu,
    offer_undo_of_runs,
    rename_button,
    run_action,
    run_buttons,
    show_notice,
)
from pages.ui.live_progress import SILENT
from pages.ui.parts import duration, escaped, page_head, page_link, status_badge
from pages.ui.visitor import owner_names, visitor, who_am_i

POLL_S = 2.0
MAX_ROWS = 14


def page() -> None:
    engine = reads.open_engine()
    with page_head(_("Runs")):
        st.space("stretch")
        import_menu(engine.store)
    who_am_i(engine.store)
    runs = engine.store.runs()
    going = any(not run.status.ended for run in runs)
    st.fragment(_list, run_every=POLL_S if going else None)(engine, going)


def _list(engine: Engine, polling: bool) -> None:
    store = engine.store
    engine.dispatch()
    show_notice()
    offer_undo_of_runs(engine)
    # Damaged runs and those of a later version can only be deleted.
    for unreadable in store.unreadable_runs():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(escaped(unreadable.sentence), width="stretch")
            delete_button(engine, [unreadable], _("Delete"), f"delete.{unreadable.id}")
    runs = store.runs()
    if polling and all(run.status.ended for run in runs):
        st.rerun()
    if not runs:
        st.info(_("No runs yet. Start one on the Fine-tune page, which estimates its time."))
        page_link("fine_tune", _("Start your first run"), "rocket_launch")
        return
    orphans = store.orphans()  # not deleted runs, which can be restored
    sizes = {run_id: size for run_id, size in store.sizes().items() if run_id not in orphans}
    every_run, runs = runs, _filtered(runs)
    if not runs:
        st.info(_("No run matches. Show the runs of experiments, or choose fewer tags."))
        _budget(sizes, every_run)
        return
    picked = st.dataframe(
        _table(store, runs, sizes),
        hide_index=True,
        placeholder="",
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        key=f"runs.table.{hash(tuple(run.id for run in runs))}",  # a selection holds row numbers
        height="content" if len(runs) <= MAX_ROWS else 560,
        column_config=_columns(),
    )
    clicked = [runs[row] for row, _column in picked.selection.cells if row < len(runs)]
    if clicked:
        st.switch_page("pages/fine_tune.py", query_params={"run": clicked[0].id})
    chosen = [runs[i] for i in picked.selection.rows if i < len(runs)]
    _selected(engine, chosen, every_run)
    _budget(sizes, every_run)
    # After an older backup of the database was restored, folders may belong to no run.
    if (found := store.orphans()) and visitor().may_change(None):
        with st.container(horizontal=True, vertical_alignment="center"):
            folders = ngettext(
                "{count} folder of files belongs to no run", "{count} folders of files belong to no run", len(found)
            )
            size = size_text(sum(size.total for size in found.values()))
            st.caption(_("{folders} ({size}).", folders=folders, size=size), width="content")
            if st.button(_("Delete these files"), icon=":material/delete:", help=_("This cannot be undone.")):
                run_action(store.delete_orphans)


def _columns() -> dict[str, Any]:
    """Return the column configuration of the table, by column name."""
    column = st.column_config
    return {
        "Run": column.TextColumn(pgettext("noun", "Run"), width="medium"),
        # Translators: the heading of a column: who started the run.
        "By": column.TextColumn(_("By"), width="small", help=_("Visitor who started it")),
        "Status": column.TextColumn(_("Status")),
        "Progress": column.ProgressColumn(
            _("Progress"), format=PERCENT_CELLS, min_value=0, max_value=100, width="small"
        ),
        "Tags": column.ListColumn(_("Tags"), width="small"),
        "Task": column.TextColumn(_("Task")),
        # Translators: the heading of a column: on which machine the run is.
        "Where": column.TextColumn(_("Machine"), help=_("Node of the cluster, or this machine")),
        "Objective": column.TextColumn(_("Objective")),
        "Validation": column.NumberColumn(_("Validation"), format=PERCENT_CELLS, help=_("Accuracy at the last frame")),
        "Test": column.NumberColumn(_("Test"), format=PERCENT_CELLS, help=_("Accuracy, measured once at the end")),
        "Scored": column.TextColumn(
            # Translators: the heading of a column: whether the classifier or a linear probe was scored.
            _("Scored by"),
            help=_(
                "A run whose classifier never learned is scored by a linear probe of its vectors; on a task with "
                "similarity scores, by Spearman's ρ"
            ),
        ),
        # Translators: the heading of a column: how long the run took.
        "Duration": column.TextColumn(_("Duration"), help=_("Excluding pauses")),
        "Memory": column.NumberColumn(_("Peak memory"), format="%d MB", help=_(PEAK_MEMORY)),
        "Created": column.DatetimeColumn(
            _("Created"),
            # Translators: a date as moment.js writes it: the day, the month's name, hours and minutes.
            format=_("D MMM, HH:mm"),
        ),
        "Encoder": column.TextColumn(_("Encoder")),
        "Size": column.NumberColumn(
            _("Size"), format="%d MB", help=_("On disk. Select a run to see what takes the space")
        ),
        "Weights": column.TextColumn(
            _("Weights"), help=_("State of the weights: dropped to save disk space, or always kept")
        ),
    }


def _filtered(runs: list[RunSummary]) -> list[RunSummary]:
    """Draw the filters; return the runs that have all chosen tags.

    Experiments have many runs, so these are hidden unless the visitor asks for them.
    """
    if of_experiments := sum(run.of_experiment for run in runs):
        count = ngettext("{count} run", "{count} runs", of_experiments)
        wanted = bound_switch(_("Also show {runs} from experiments", runs=count), Runs.EXPERIMENTS)
        runs = runs if wanted else [run for run in runs if not run.of_experiment]
    tags = sorted({tag for run in runs for tag in run.tags})
    if not tags:
        return runs
    chosen, tied = bound_several(Runs.TAGS, tags)
    known = {TAG: _("Tag “replay”: bundled or imported runs")}
    st.pills(
        _("Filter by tag"), tags, selection_mode="multi", format_func=lambda tag: known.get(tag, tag), **tied.by_default
    )
    return [run for run in runs if set(chosen) <= {*run.tags}]


def _budget(sizes: Mapping[str, RunSize], runs: list[RunSummary]) -> None:
    """Draw the disk usage of all runs, and say what happens beyond the budget."""
    total, budget_gb = sum(size.total for size in sizes.values()), settings().disk_gb
    listed = {run.id for run in runs}
    deleted = sum(size.total for run_id, size in sizes.items() if run_id not in listed)
    taken = {"total": size_text(total), "budget": f"{budget_gb:g}"}
    said = [
        _(
            "Runs use {total} of the {budget} GB that SCL_DISK_GB allows, including {deleted} of deleted runs "
            "that can still be restored.",
            deleted=size_text(deleted),
            **taken,
        )
        if deleted
        else _("Runs use {total} of the {budget} GB that SCL_DISK_GB allows.", **taken)
    ]
    lost = sum(dropped_sentence(run) is not None for run in runs)
    if lost:
        said.append(
            ngettext(
                "{count} run has lost its weights to stay within the limit; curves and frames are kept.",
                "{count} runs have lost their weights to stay within the limit; curves and frames are kept.",
                lost,
            )
        )
    elif total <= budget_gb * GB:
        said.append(
            _(
                "Beyond the limit, weights of the oldest finished runs are deleted: first the weights saved at "
                "earlier steps, then those of the last step."
            )
        )
    if total > budget_gb * GB:
        said.append(
            _("The next run that starts or ends drops weights of finished runs. To free space now, delete runs.")
        )
        st.warning(escaped(sentences(said)))
    else:
        st.caption(escaped(sentences(said)))


def _table(store: Store, runs: list[RunSummary], sizes: Mapping[str, RunSize]) -> pd.DataFrame:
    """Return the table; `_columns` translates its column names."""
    last = store.last_scores()
    scores: dict[str, dict[str, Evaluation]] = {}  # the newest meaningful ones, by run and split
    for run in runs:
        # If the classifier learns from step 1, turned knobs do not change which scores are meaningful.
        config = run.config if classifier_learns_from(run.config) == 1 else run.effective
        scores[run.id] = {
            evaluation.split: evaluation
            for evaluation in scored_evaluations(config, last.get(run.id, []))
            if evaluation.step or not run.last_step  # a run that learns has left its first score behind
        }
    # Both splits of a finished run have the same scorer.
    newest = [scores[run.id].get("test") or scores[run.id].get("validation") for run in runs]
    scorers = [
        ""
        if score is None
        else _("Spearman × 100")
        if score.spearman is not None
        else _("classifier")
        if score.probe_rows is None
        else _("linear probe")
        for score in newest
    ]
    weights = [
        _("dropped")
        if run.weights_dropped_at is not None
        else _("last step only")
        if run.snapshots_dropped_at is not None
        else _("always kept")
        if run.keep_weights
        else ""
        for run in runs
    ]
    table = pd.DataFrame(
        {
            "Run": [run.title for run in runs],
            "By": owner_names(store, [run.owner for run in runs]),
            "Status": _statuses(store, runs),
            "Progress": hundredths(
                [None if run.status == Status.FINISHED else run.last_step / run.steps for run in runs]
            ),
            "Tags": [list(run.tags) for run in runs],
            "Task": [" · ".join([task_label(run.config), *row_labels(run.config.task)]) for run in runs],
            "Where": [run.place or (_("this machine") if run.device else "") for run in runs],
            "Objective": [objective_label(run.effective) for run in runs],
            "Validation": hundredths([_accuracy(scores[run.id], "validation") for run in runs]),
            "Test": hundredths([_accuracy(scores[run.id], "test") for run in runs]),
            "Scored": scorers,
            "Duration": [duration(run.elapsed_s) if run.started_at else "" for run in runs],
            "Memory": [None if run.peak_memory is None else round(run.peak_memory / 2**20) for run in runs],
            "Created": [datetime.fromtimestamp(run.created_at) for run in runs],
            "Encoder": [run.config.encoder.id for run in runs],
            "Size": [round(sizes.get(run.id, RunSize()).total / 2**20) for run in runs],
            **({"Weights": weights} if any(weights) else {}),
        }
    )
    empty = ["Scored"] if {"", _("classifier")}.issuperset(scorers) else []
    empty += [] if any(run.status != Status.FINISHED for run in runs) else ["Progress"]
    empty += [] if any(run.tags for run in runs) else ["Tags"]
    empty += [] if settings().shared else ["By"]
    empty += [] if any(run.place for run in runs) else ["Where"]
    empty += [] if any(run.peak_memory for run in runs) else ["Memory"]
    return table.drop(columns=empty)


def _statuses(store: Store, runs: Sequence[RunSummary]) -> list[str]:
    """Return the status of each run; that of a queued run includes the number of runs ahead of it."""
    queued = any(run.status == Status.QUEUED for run in runs)
    waiting = places(store, len(slots()), most_of_visitor()) if queued else {}
    found = []
    for run in runs:
        status = _(str(run.status)) if run.responding else _("not responding")
        if run.id not in waiting:
            found.append(status)
        elif before := waiting[run.id].before:
            found.append(_("{status}, {count} ahead", status=status, count=f"{before:,}"))
        else:
            found.append(_("{status}, next", status=status))
    return found


def _accuracy(scores: Mapping[str, Evaluation], split: str) -> float | None:
    """Return the accuracy on a split; Spearman's ρ for a task with similarity scores."""
    if split not in scores:
        return None
    spearman = scores[split].spearman
    return scores[split].values["accuracy"] if spearman is None else spearman


def _selected(engine: Engine, chosen: list[RunSummary], runs: list[RunSummary]) -> None:
    """Draw what can be done with the chosen runs. Args: runs: all runs, whose tags are offered too."""
    if not chosen:
        hint = _(
            "Click a run to open it. Tick one to rename, tag, pause or delete it; tick several to compare or delete "
            "them."
        )
        shared = _("You can watch and compare other visitors’ runs.") if settings().shared else ""
        st.caption(sentences([hint, shared]))
        return
    if len(chosen) == 1:
        run = chosen[0]
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escaped(run.title)}**", width="content")
                status_badge(run)
                st.space("stretch")
                run_buttons(engine, run)
                rename_button(engine, run, runs)
                export_menu(engine.store, engine.store.run(run.id))
                if run.status.ended:
                    delete_button(engine, [run], _("Delete"), f"delete.{run.id}")
            message = run.message if run.responding else SILENT
            if is_first_note(message, run.config):
                # The note from launch may name a knob, but an ended run has no knobs.
                message = classifier_note(run.effective, over=run.status.ended)
            if message:
                st.caption(escaped(message))
            if dropped := dropped_sentence(run):
                st.caption(escaped(dropped))
            with st.container(horizontal=True):
                # Translators: a link that opens the run.
                page_link("fine_tune", pgettext("verb", "Open"), "monitoring", {"run": run.id})
                draw_links(run)
            draw_files(engine, run)
        return
    ended = [run for run in chosen if run.status.ended and visitor().may_change(run.owner)]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_("{runs} selected.", runs=ngettext("{count} run", "{count} runs", len(chosen))), width="content")
        if len(chosen) <= MOST_RUNS:
            together = {"runs": ",".join(run.id for run in chosen)}
            page_link("compare", _("Compare them"), "compare_arrows", together)
        label = _("Delete {count}", count=len(ended)) if ended else _("Delete")
        delete_button(engine, ended, label, "delete.several")
    if len(ended) < len(chosen):
        st.caption(_("Runs that are still active, or belong to others, are kept."))


state.require_app()
page()
