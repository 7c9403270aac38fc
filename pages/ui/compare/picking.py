"""The compared runs, as the address names them, and the example ids that several views share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.artifacts.shared_examples import example_keys, linked_ids
from core.config import RunConfig
from core.errors import PlaygroundError, quote_value
from core.figures.map_data import Bundle, examples_bundle
from core.figures.run_curves import MOST_RUNS
from core.messages import _
from core.store import RunRecord, RunSummary, Store
from core.tasks.registry import task_label
from pages.ui import state
from pages.ui.address import Compare, split
from pages.ui.bound import run_labels
from pages.ui.explore.run_reads import Frames, cached_by_frames, frames_of
from pages.ui.parts import escaped

KEY = "compare.runs"


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the compared runs.

    Attributes:
        config: including the knob turns.
        name: distinct from the other runs' names. It may come from a user and is not escaped.
        frames: None before the run has any.
    """

    run: RunRecord
    config: RunConfig
    name: str
    frames: Frames | None


class RunFrames(NamedTuple):
    """A compared run that has frames, and its name."""

    name: str
    frames: Frames


def pick(store: Store, runs: Sequence[RunSummary], head: DeltaGenerator) -> list[str]:
    """Draw the list of runs in the page's first line. Return the ids of the chosen runs, in the order of choice."""
    text = Compare.RUNS.text
    found, missing = [], []
    for part in dict.fromkeys(split(text or "")):
        try:
            found.append(store.find(part))
        except PlaygroundError:
            missing.append(escaped(quote_value(part)))
    if missing and not found:
        state.complain(Compare.RUNS.name, text or "", Compare.RUNS.problem)
    for given in missing if found else []:
        st.warning(_("The link asks for runs = {given}, but no run has this id; it was left out.", given=given))
    if text is None or (missing and not found):  # the newest run that has frames, and one of its task
        seen = [run for run in runs if run.probe_known]
        same = [run for run in seen[1:] if task_label(run.config) == task_label(seen[0].config)]
        found = [run.id for run in (*seen[:1], *(same or seen[1:])[:1])]
    found = list(dict.fromkeys(found))
    if len(found) > MOST_RUNS:
        st.warning(
            _(
                "The link asks for {count} runs, but at most {most} can be compared. Showing the first {most}.",
                count=len(found),
                most=MOST_RUNS,
            )
        )
    chosen = found[:MOST_RUNS]
    Compare.RUNS.put(chosen)
    labels = run_labels(runs)
    # At every run of the script: a list that a browser draws for an interrupted run starts empty, and reports that.
    state.set_widget(KEY, chosen)
    head.multiselect(
        _("Runs"),
        list(labels),
        format_func=labels.__getitem__,
        max_selections=MOST_RUNS,
        placeholder=_("Choose two to six runs"),
        label_visibility="collapsed",
        key=KEY,
        on_change=lambda: put_runs(state.widget_value(KEY) or []),
    )
    return chosen


def put_runs(ids: Sequence[str]) -> None:
    """Write the compared runs into the address. If the first run changes, clear the maps' selection and zoom."""
    before = split(Compare.RUNS.text or "")
    dropped = [item for item in Compare.of("runs compared") if (item.text or "") not in ids]
    if Compare.TWIN.text is not None and Compare.TWIN in dropped:
        dropped += Compare.of("twin")
    if before and before[:1] != list(ids[:1]):
        dropped += Compare.of("first run compared")
    for item in dropped:
        item.forget()
    Compare.RUNS.put(list(ids))


def load_compared(store: Store, names: Mapping[str, str]) -> list[Compared]:
    """Load the runs in their current state. Args: names: by id. Raises: StoreError for a deleted run."""
    found = []
    for run_id, name in names.items():
        run, frames = store.run(run_id), None
        if run.probe is not None:
            frames = frames_of(store, run)
            if frames.problem:
                st.warning(escaped(frames.problem))
        found.append(Compared(run, run.effective, name, frames if frames is not None and frames.numbers else None))
    return found


def group_name(names: Sequence[str]) -> str:
    """Name a group, such as runs that differ only in the seed, as "a" or "a and 2 more" from its members' names."""
    first, more = names[0], len(names) - 1
    return _("{first} and {more} more", first=first, more=more) if more else first


@dataclass(frozen=True, slots=True)
class Linked:
    """The examples of several runs, linked by id.

    Attributes:
        known: every id.
        rows: per run, the row in its probe set by id, in the order of its probe set.
        bundles: per run, its examples for the browser.
    """

    known: frozenset[int]
    rows: tuple[Mapping[int, int], ...]
    bundles: tuple[Bundle, ...]


@cached_by_frames(max_entries=16)
def link_examples(every: tuple[Frames, ...]) -> Linked:
    """Link the examples of runs by text, class and split."""
    probes = [frames.probe for frames in every]
    ids = linked_ids([example_keys(probe) for probe in probes])
    return Linked(
        frozenset(i for of_run in ids for i in of_run),
        tuple({number: row for row, number in enumerate(of_run)} for of_run in ids),
        tuple(
            examples_bundle(of_run, probe.texts, probe.labels, probe.classes, probe.splits)
            for of_run, probe in zip(ids, probes, strict=True)
        ),
    )
