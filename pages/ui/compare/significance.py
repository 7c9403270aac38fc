"""Whether runs that were trained in different ways, under the same seeds, differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.artifacts.seeds import SeedGroup
from core.config.score_source import scored
from core.experiments.design import LABEL_CHARS, Axis, Design, Level
from core.experiments.result_table import cautions, notes, table_rows
from core.experiments.results import TEST, Results, of_runs
from core.messages import N_, _, sentences
from core.store import ExperimentRun, Store
from pages.ui.compare.picking import Compared
from pages.ui.parts import escaped

# What the groups are called as one axis.
AXIS = N_("Runs")
OVER_SEEDS = N_("Over seeds")
# One seed says nothing of others.
FEWEST_SEEDS = 2


def significance(store: Store, groups: Sequence[SeedGroup], heads: Sequence[str], runs: Sequence[Compared]) -> None:
    """Draw a table of paired differences from the first group, where at least two groups share two seeds."""
    found = paired_results(store, groups, heads, runs)
    if found is None:
        if len(groups) > 1 and any(len(group.runs) > 1 for group in groups):
            st.caption(
                _(
                    "The first of these shares no two seeds with another, so nothing can be said about chance. An "
                    "experiment runs the same seeds for all."
                )
            )
        return
    st.subheader(_("More than chance? {over}", over=_(OVER_SEEDS)))
    header, rows = table_rows(found)
    table = pd.DataFrame(rows, columns=header)
    st.dataframe(table, hide_index=True, placeholder="", height="content", key="compare.significance")
    against = _("Each is compared with {run}, the first of the list.", run=found.cells[0].title)
    words = [against, *cautions(found), *notes(found)]
    st.caption(escaped(sentences(words)))
    st.page_link("pages/experiments.py", label=_("Run an experiment with more seeds"), icon=":material/science:")


def paired_results(
    store: Store, groups: Sequence[SeedGroup], heads: Sequence[str], runs: Sequence[Compared]
) -> Results | None:
    """The groups as the cells of an experiment, by test accuracy; None where no two can be compared."""
    seeds = [{runs[number].config.seed for number in group.runs} for group in groups]
    if not any(len(seeds[0] & of_group) >= FEWEST_SEEDS for of_group in seeds[1:]):
        return None
    labels = [_label(head, place) for place, head in enumerate(heads)]
    design = Design(
        axes=(Axis(name=AXIS, levels=tuple(Level(label=label) for label in labels)),),
        seeds=tuple(sorted(set().union(*seeds))),
        baseline={AXIS: labels[0]},
    )
    made, scores = [], {}
    for cell, group in enumerate(groups):
        for number in group.runs:
            run = runs[number].run
            newest = {one.split: one for one in scored(runs[number].config, store.evaluations(run.id))}
            if TEST in newest:
                scores[run.id] = newest[TEST]
            made.append(
                ExperimentRun(cell, run.config.seed, run.id, status=run.status, begun_attempt=run.begun_attempt)
            )
    return of_runs(store, design, made, scores, measure="accuracy", split=TEST)


def _label(head: str, place: int) -> str:
    """A group's name, short enough for a level and distinct from the others'."""
    return head if len(head) <= LABEL_CHARS else f"{head[: LABEL_CHARS - 6].rstrip()}… ({place + 1})"
