"""What was deleted lately, as the store remembers it: a line that says so, and brings it back."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import groupby
from math import ceil

import streamlit as st

from core.errors import PlaygroundError
from core.messages import _, listed, ngettext
from core.store import UNDO_S, Discarded, Experiment, ExperimentTable
from core.store.sizes import size_text
from core.workers import Engine
from pages.ui import reads, state
from pages.ui.address import Data
from pages.ui.controls import leave_notice
from pages.ui.parts import escaped
from pages.ui.visitor import require_own, visitor


def offer_undo_of_runs(engine: Engine) -> None:
    """A line for all that were deleted together."""
    own = [run for run in engine.store.discarded() if visitor().may_change(run.owner)]
    for at, group in groupby(own, key=lambda run: run.at):
        runs = list(group)

        def undo(runs: list[Discarded] = runs) -> None:
            for run in runs:
                require_own(run.owner)
                engine.store.restore(run.id)

        words = _(
            "Deleted {names}. This can be undone for {minutes}; then {size} will be freed.",
            names=listed(f"“{escaped(run.title)}”" for run in runs),
            minutes=_time_left(at),
            size=size_text(sum(run.size for run in runs)),
        )
        _line(words, str(at), undo)


def offer_undo_of_tasks() -> None:
    for task in reads.library().discarded():

        def undo(task_id: str = task.id) -> None:
            reads.library().restore(task_id)
            state.forget_widget("data.task")
            Data.TASK.put(task_id)

        words = _(
            "Deleted {name}. Runs that were made with it keep their rows. This can be undone for {minutes}.",
            name=f"“{escaped(task.name)}”",
            minutes=_time_left(task.discarded_at),
        )
        _line(words, task.id, undo)


def offer_undo_of_experiments(table: ExperimentTable) -> None:
    for experiment in table.discarded():
        if not visitor().may_change(experiment.owner):
            continue

        def undo(experiment: Experiment = experiment) -> None:
            require_own(experiment.owner)
            table.restore(experiment.id)

        words = _(
            "Deleted {name}; its runs are still there. This can be undone for {minutes}.",
            name=f"“{escaped(experiment.title)}”",
            minutes=_time_left(experiment.discarded_at),
        )
        _line(words, experiment.id, undo)


def _time_left(discarded_at: float | None) -> str:
    return ngettext(
        "{count} minute", "{count} minutes", max(1, ceil(((discarded_at or 0.0) + UNDO_S - time.time()) / 60))
    )


def _line(words: str, key: str, undo: Callable[[], None]) -> None:
    def bring_back() -> None:
        # Before the page is drawn: a button that a browser still shows is answered also when its time is over.
        try:
            undo()
        except PlaygroundError as error:
            leave_notice(str(error))

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(words, width="content")
        st.button(_("Undo"), key=f"undo.{key}", icon=":material/undo:", on_click=bring_back)
