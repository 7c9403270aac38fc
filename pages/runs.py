"""Runs: every run there is; open, resume, stop, delete, read its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pandas as pd
import streamlit as st

from core.artifacts.waiting_time import places
from core.config.summary import objective_label
from core.events import Evaluation
from core.figures.run_curves import MOST_RUNS
from core.quantities import PERCENT_CELLS, counted, hundredths
from core.settings import settings
from core.store import RunSummary, Status, Store
from core.store.budget import GB, dropped_sentence
from core.store.sizes import RunSize, size_text
from core.tasks.task_label import task_label
from core.training.score_source import classifier_learns_from, classifier_note, scored
from core.workers import Engine
from core.workers.limits import most_of_visitor
from core.workers.machine import slots
from pages.ui import reads, state
from pages.ui.address import Runs
from pages.ui.bound import bound_several, bound_switch
from pages.ui.controls import delete_button, disk_line, offer_undo, rename_button, run_buttons, show_notice
from pages.ui.exports import export_menu, import_menu
from pages.ui.head import page_head
from pages.ui.live import log_tail
from pages.ui.parts import duration, escaped, status_badge
from pages.ui.visitor import all_whose, visitor, who_am_i

POLL_S = 2.0
MAX_ROWS = 14


def page() -> None:
    engine = reads.open_engine()
    with page_head("Runs"):
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
    offer_undo(engine)
    runs = store.runs()
    if polling and all(run.status.ended for run in runs):
        st.rerun()
    if not runs:
        st.info("No runs yet. Start one on the Fine-tune page; it takes about a minute.")
        st.page_link("pages/fine_tune.py", label="Start your first run", icon=":material/rocket_launch:")
        return
    sizes = store.sizes()
    every_run, runs = runs, _tagged(_without_experiments(runs))
    if not runs:
        st.info("No run fits: turn on the runs of experiments, or choose fewer tags.")
        _budget(sizes, every_run)
        return
    picked = st.dataframe(
        _table(store, runs, sizes),
        hide_index=True,
        placeholder="",
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        key=f"runs.table.{hash(tuple(run.id for run in runs))}",  # a selection is of rows: other runs, another table
        height="content" if len(runs) <= MAX_ROWS else 560,
        column_config={
            "Run": st.column_config.TextColumn(width="medium"),
            "By": st.column_config.TextColumn(width="small", help="Who started it"),
            "Tags": st.column_config.ListColumn(width="small"),
            "Progress": st.column_config.ProgressColumn(
                format=PERCENT_CELLS, min_value=0, max_value=100, width="small"
            ),
            "Validation": st.column_config.NumberColumn(format=PERCENT_CELLS, help="Accuracy at the last frame"),
            "Test": st.column_config.NumberColumn(format=PERCENT_CELLS, help="Accuracy, scored once at the end"),
            "Scored": st.column_config.TextColumn(
                width="small", help="A run whose classifier never learned is scored by a linear probe of its vectors"
            ),
            "Where": st.column_config.TextColumn(help="The node of the cluster, or this machine"),
            "Took": st.column_config.TextColumn(help="Without pauses"),
            "Created": st.column_config.DatetimeColumn(format="D MMM, HH:mm"),
            "Size": st.column_config.NumberColumn(format="%d MB", help="On disk; select a run to see what takes it"),
            "Weights": st.column_config.TextColumn(help="Whether the disk budget took them, or must leave them"),
        },
    )
    clicked = [runs[row] for row, _ in picked.selection.cells if row < len(runs)]
    if clicked:
        st.switch_page("pages/fine_tune.py", query_params={"run": clicked[0].id})
    chosen = [runs[i] for i in picked.selection.rows if i < len(runs)]
    if not chosen:
        yours = " Those of others are there to be watched and compared." if settings().shared else ""
        st.caption(
            "Click a run to open it. Tick one to rename, tag, pause or delete it, or several to compare or delete "
            f"them.{yours}"
        )
    elif len(chosen) == 1:
        _one(engine, chosen[0], every_run)
    else:
        _several(engine, chosen)
    _budget(sizes, every_run)


def _without_experiments(runs: list[RunSummary]) -> list[RunSummary]:
    """Runs that somebody started one by one, and on demand those of experiments, which are many."""
    count = sum(run.of_experiment for run in runs)
    if not count:
        return runs
    wanted, widget = bound_switch(Runs.EXPERIMENTS)
    st.toggle(f"Show {counted(count, 'run')} of experiments too", **widget.by_value)
    return runs if wanted else [run for run in runs if not run.of_experiment]


def _tagged(runs: list[RunSummary]) -> list[RunSummary]:
    """Those that have all tags that were chosen; nothing is asked while no run has any."""
    tags = sorted({tag for run in runs for tag in run.tags})
    if not tags:
        return runs
    wanted, widget = bound_several(Runs.TAGS, tags)
    st.pills("Tags", tags, selection_mode="multi", label_visibility="collapsed", **widget.by_default)
    return [run for run in runs if set(wanted) <= {*run.tags}]


def _budget(sizes: Mapping[str, RunSize], runs: list[RunSummary]) -> None:
    """What all runs take, and what happens beyond the budget."""
    total, budget_gb = sum(size.total for size in sizes.values()), settings().disk_gb
    listed = {run.id for run in runs}
    deleted = sum(size.total for run_id, size in sizes.items() if run_id not in listed)
    undo = f", {size_text(deleted)} of it deleted runs that can still be brought back" if deleted else ""
    words = f"Runs take {size_text(total)} of {budget_gb:g} GB (SCL_DISK_GB){undo}."
    lost = sum(dropped_sentence(run) is not None for run in runs)
    if lost:
        who = "1 run has" if lost == 1 else f"{lost} runs have"
        words += f" {who} lost weights to stay within it; curves and frames are kept."
    elif total <= budget_gb * GB:
        words += " Beyond that, finished runs lose snapshots, then weights, the oldest first."
    if total > budget_gb * GB:
        st.warning(
            escaped(
                f"{words} The next run to start or end drops weights of finished runs. To make room now, delete runs."
            )
        )
    else:
        st.caption(escaped(words))


def _weights_kept(run: RunSummary) -> str:
    if run.weights_dropped_at is not None:
        return "dropped"
    if run.snapshots_dropped_at is not None:
        return "last step only"
    return "always kept" if run.keep_weights else ""


def _table(store: Store, runs: list[RunSummary], sizes: Mapping[str, RunSize]) -> pd.DataFrame:
    scores = _scores(store, runs)
    weights = [_weights_kept(run) for run in runs]
    table = pd.DataFrame(
        {
            "Run": [run.title for run in runs],
            "By": all_whose(store, [run.owner for run in runs]),
            "Tags": [list(run.tags) for run in runs],
            "Status": _statuses(store, runs),
            "Progress": hundredths([run.last_step / run.steps for run in runs]),
            "Task": [task_label(run.config) for run in runs],
            "Where": [run.place or ("this machine" if run.device else "") for run in runs],
            "Objective": [objective_label(run.effective) for run in runs],
            "Validation": hundredths([_accuracy(scores[run.id], "validation") for run in runs]),
            "Test": hundredths([_accuracy(scores[run.id], "test") for run in runs]),
            "Scored": [_scored_by(scores[run.id]) for run in runs],
            "Took": [duration(run.elapsed_s) if run.started_at else "" for run in runs],
            "Created": [datetime.fromtimestamp(run.created_at) for run in runs],
            "Encoder": [run.config.encoder.id for run in runs],
            "Size": [round(sizes.get(run.id, RunSize()).total / 2**20) for run in runs],
            **({"Weights": weights} if any(weights) else {}),
        }
    )
    empty = [] if "linear probe" in set(table["Scored"]) else ["Scored"]
    empty += [] if any(run.tags for run in runs) else ["Tags"]
    empty += [] if settings().shared else ["By"]
    empty += [] if any(run.place for run in runs) else ["Where"]
    return table.drop(columns=empty)


def _statuses(store: Store, runs: Sequence[RunSummary]) -> list[str]:
    """Of a run that waits, also how many begin before it."""
    if not any(run.status == Status.QUEUED for run in runs):
        return [str(run.status) for run in runs]
    waiting = places(store, len(slots()), most_of_visitor())
    before = {run_id: f"{place.before:,} before it" if place.before else "next" for run_id, place in waiting.items()}
    return [f"{run.status}, {before[run.id]}" if run.id in before else str(run.status) for run in runs]


def _scores(store: Store, runs: list[RunSummary]) -> dict[str, dict[str, Evaluation]]:
    """The newest scores that mean something, by run and split."""
    newest = store.last_scores()
    found = {}
    for run in runs:
        # Where the classifier learns from the start, no knob that was turned since changes whose scores they are.
        learns = classifier_learns_from(run.config) == 1
        config = run.config if learns else store.effective_config(run.id)
        found[run.id] = {evaluation.split: evaluation for evaluation in scored(config, newest.get(run.id, []))}
    return found


def _accuracy(scores: Mapping[str, Evaluation], split: str) -> float | None:
    return scores[split].values["accuracy"] if split in scores else None


def _scored_by(scores: Mapping[str, Evaluation]) -> str:
    """What the newest score of a run is one of; both splits of a finished run are scored alike."""
    newest = scores.get("test") or scores.get("validation")
    return "" if newest is None else "classifier" if newest.probe_rows is None else "linear probe"


def _one(engine: Engine, run: RunSummary, runs: list[RunSummary]) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{escaped(run.title)}**", width="content")
            status_badge(run)
            st.space("stretch")
            run_buttons(engine, run)
            rename_button(engine, run, runs)
            export_menu(engine.store, engine.store.run(run.id))
            if run.status.ended:
                delete_button(engine, [run], "Delete", f"delete.{run.id}")
        message = run.message
        if message == classifier_note(run.config):  # it may name a knob, and a run that ended has none
            message = classifier_note(run.effective, over=run.status.ended)
        if message:
            st.caption(escaped(message))
        if dropped := dropped_sentence(run):
            st.caption(escaped(dropped))
        with st.container(horizontal=True):
            icons = {
                "Open": ":material/monitoring:",
                "Explore": ":material/scatter_plot:",
                "Tokens": ":material/format_ink_highlighter:",
                "Compare": ":material/compare_arrows:",
                "Use again": ":material/replay:",
            }
            st.page_link("pages/fine_tune.py", label="Open", icon=icons["Open"], query_params={"run": run.id})
            st.page_link("pages/explore.py", label="Explore", icon=icons["Explore"], query_params={"run": run.id})
            st.page_link("pages/tokens.py", label="Tokens", icon=icons["Tokens"], query_params={"run": run.id})
            st.page_link("pages/compare.py", label="Compare", icon=icons["Compare"], query_params={"runs": run.id})
            label = "Use again"
            st.page_link("pages/fine_tune.py", label=label, icon=icons["Use again"], query_params={"from": run.id})
        disk_line(engine, run)
        with st.expander("Log"):
            st.code(log_tail(engine, run) or "Nothing was written.", language=None)


def _several(engine: Engine, runs: list[RunSummary]) -> None:
    ended = [run for run in runs if run.status.ended and visitor().may_change(run.owner)]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{counted(len(runs), 'run')} selected.", width="content")
        if len(runs) <= MOST_RUNS:
            together = {"runs": ",".join(run.id for run in runs)}
            icon = ":material/compare_arrows:"
            st.page_link("pages/compare.py", label="Compare them", icon=icon, query_params=together)
        delete_button(engine, ended, f"Delete {len(ended)}" if ended else "Delete", "delete.several")
    if len(ended) < len(runs):
        st.caption("Runs that are going on, or that are not yours, stay.")


state.require_app()
page()
