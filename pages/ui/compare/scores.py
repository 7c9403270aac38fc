"""The settings in which runs differ, their scores, and paired tests over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PureWindowsPath

import pandas as pd
import streamlit as st

from core.advice.score_source import PROBE_ROWS, scored_evaluations
from core.artifacts.maps import run_request
from core.artifacts.seeds import SCORES, Measure, SeedGroup, Spread, scores_over_seeds
from core.config.compare import config_differences
from core.events import SPEARMAN, TEST
from core.experiments.design import LABEL_CHARS, Axis, Design, Level
from core.experiments.result_table import SHARES, cautions, in_phrase, notes, table_rows
from core.experiments.results import compute_results
from core.figures.small_multiples import Path
from core.messages import ENGLISH, N_, _, in_language, join_list, ngettext, sentences
from core.quantities import percent, signed
from core.representation.metrics import METRICS
from core.representation.projections.sequence import keyframes
from core.store import ExperimentRun, Store
from core.tasks.listing import csv_file
from pages.ui.address import Compare
from pages.ui.changed_texts import robustness
from pages.ui.compare.pair import example_test
from pages.ui.compare.picking import Compared, group_name
from pages.ui.explore import run_reads
from pages.ui.explore.measures import draw_plane, training_measures
from pages.ui.parts import escaped, page_link
from pages.ui.tables import csv_button
from pages.ui.waiting import complete_since, ensure_job

# Name of the axis that the groups form.
AXIS = N_("Runs")
# One seed says nothing about others.
FEWEST_SEEDS = 2
BEST = "★ "
ARROWS = {"higher": "↑ ", "lower": "↓ ", None: ""}
# By split: the label of a classifier score, the label of a linear-probe score, and how both are measured.
SPLITS: Mapping[str, tuple[str, str, str]] = {
    TEST: (
        N_("Test {measure}"),
        N_("Test {measure}, linear probe"),
        N_("On the whole test split, once, at the end of the run."),
    ),
    "validation": (
        N_("Validation {measure}"),
        N_("Validation {measure}, linear probe"),
        N_("On the validation split, at the last frame."),
    ),
}
# The baseline of the runs, so no run is marked as best at it.
PROBE = Measure("baseline.accuracy", N_("Probe before training"), None)
PROBE_ABOUT = N_(
    "Validation accuracy of a logistic regression (C = 1) fitted to the vectors of the training rows, from the "
    "encoder before training, including rows that a short run does not reach."
)
PROBE_TEST = Measure("baseline_test.accuracy", N_("Probe before training, test"), None)
PROBE_COUNT = Measure("baseline.train_rows", N_("Training rows of this probe"), None)
# A run whose classifier never learned is scored by a linear probe; the two kinds are not ranked against each other.
OF_PROBE = "probe."
OF_PROBE_ABOUT = N_(
    "The classifier never learned, so this scores a logistic regression (C = 1) on the last frame's vectors of up "
    "to {rows} training rows."
)
# Columns of the tables.
MEASURE, HOW, SETTING = N_("Measure"), N_("Definition"), N_("Setting")


def _significance(store: Store, groups: Sequence[SeedGroup], heads: Sequence[str], runs: Sequence[Compared]) -> None:
    """Draw the paired differences in test accuracy from the first group, if another group shares two seeds with it."""
    seeds = [{runs[number].config.seed for number in group.runs} for group in groups]
    if not any(len(seeds[0] & of_group) >= FEWEST_SEEDS for of_group in seeds[1:]):
        if len(groups) > 1 and any(len(group.runs) > 1 for group in groups):
            st.caption(
                _(
                    "The first run shares no two seeds with another, so chance cannot be ruled out. An experiment "
                    "runs the same seeds for all."
                )
            )
        return
    # The groups are compared as cells of an experiment. Their labels have to fit a level and be distinct.
    labels = [
        head if len(head) <= LABEL_CHARS else f"{head[: LABEL_CHARS - 6].rstrip()}… ({place + 1})"
        for place, head in enumerate(heads)
    ]
    design = Design(
        axes=(Axis(name=AXIS, levels=tuple(Level(label=label) for label in labels)),),
        seeds=tuple(sorted(set().union(*seeds))),
        baseline={AXIS: labels[0]},
    )
    made, scores = [], {}
    for cell, group in enumerate(groups):
        for number in group.runs:
            run = runs[number].run
            newest = {one.split: one for one in scored_evaluations(runs[number].config, store.evaluations(run.id))}
            if TEST in newest:
                scores[run.id] = newest[TEST]
            made.append(
                ExperimentRun(cell, run.config.seed, run.id, status=run.status, begun_attempt=run.begun_attempt)
            )
    by_rank = bool(scores) and all(one.spearman is not None for one in scores.values())
    found = compute_results(store, design, made, scores, measure=SPEARMAN if by_rank else "accuracy", split=TEST)
    st.subheader(_("Significance over seeds"))
    header, rows = table_rows(found)
    table = pd.DataFrame(rows, columns=header)
    st.dataframe(table, hide_index=True, placeholder="", height="content", key="compare.significance")
    against = _("Each is compared with {run}, the first run.", run=found.cells[0].title)
    st.caption(escaped(sentences([against, *cautions(found), *notes(found)])))
    page_link("experiments", _("Run an experiment with more seeds"), "science")


def overview(store: Store, runs: Sequence[Compared]) -> bool:
    """Draw the settings, the scores and the tests. Return whether something is still being computed."""
    st.header(_("Settings that differ"))
    different = config_differences([one.config for one in runs])
    if different:
        names = [one.name for one in runs]
        settings = [{SETTING: _(one.label)} | dict(zip(names, one.values, strict=True)) for one in different]
        _table(pd.DataFrame(settings), pinned=SETTING)
        st.caption(_("All other settings are the same or follow from these. “–”: not used by this run."))
    else:
        st.caption(_("None: these runs have the same settings and the same seed."))
    st.header(_("Scores"))
    found = _scores_of(store, runs)
    if not found.measures:
        st.caption(_("No scores yet. The first appear with a run's first frame."))
        return False
    rows = []
    for name, (measure, about) in found.measures.items():
        cells = [spread_text(group.scores[name], name, _seeds(group, runs)) for group in found.groups]
        label = ARROWS[measure.better] + measure.label
        rows.append({MEASURE: label} | dict(zip(found.heads, cells, strict=True)) | {HOW: about})
    with st.container(key="compare_scores"):
        _table(pd.DataFrame(rows), pinned=MEASURE, wide=HOW)
    st.caption(_legend(found, runs))
    csv_button(_("Scores as CSV"), lambda: scores_csv(store, runs), "scores.csv", key="compare.scores.csv")
    paths = {one.name: _measured(one) for one in runs}
    if any(paths.values()):
        draw_plane(paths, key="compare.plane")
    busy = False
    for one in runs:
        if one.frames is None or not one.run.status.ended:
            continue
        steps = one.frames.numbers
        if {*keyframes(one.config.probe.frame_steps or steps, steps, ended=True)} <= paths[one.name].keys():
            continue
        label = _("Measures of the vectors: {run}", run=one.name)
        busy = ensure_job("measures", run_request(one.run), label, since=complete_since(one.run)) or busy
    busy = training_measures(store, {one.name: one.run for one in runs}, Compare) or busy
    _significance(store, found.groups, found.heads, runs)
    example_test(store, runs)
    return robustness(store, runs) or busy


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of runs, grouped by runs that differ only in the seed.

    Attributes:
        heads: names of the groups.
        measures: by name, each measure that some run has, and how it is measured.
        measured: last steps of runs whose representation is measured there.
        rows_differ: whether a best mark is missing because runs were scored on different validation rows.
    """

    groups: tuple[SeedGroup, ...]
    heads: list[str]
    measures: Mapping[str, tuple[Measure, str]]
    measured: set[int]
    rows_differ: bool


def _scores_of(store: Store, runs: Sequence[Compared]) -> Scores:
    """Collect the scores of the runs so far."""
    scores: list[dict[str, float | None]] = []
    measured = set[int]()
    for one in runs:
        of_run: dict[str, float | None] = {}
        newest = {e.split: e for e in scored_evaluations(one.config, store.evaluations(one.run.id))}  # in step order
        for split, evaluation in newest.items():
            if evaluation.spearman is not None:
                of_run[f"{split}.{SPEARMAN}"] = evaluation.spearman
                continue
            who = OF_PROBE if evaluation.probe_rows is not None and split in SPLITS else ""
            of_run |= {f"{split}.{who}{name}": value for name, value in evaluation.values.items()}
        known = _measured(one)
        # An earlier frame of one run must not stand beside the last of another.
        if one.frames is not None and (last := one.frames.numbers[-1]) in known:
            measured.add(last)
            of_run |= known[last]
        scores.append(of_run)
    measures = {name: entry for name, entry in _measures().items() if any(name in of_run for of_run in scores)}
    sets = validation_sets(runs)
    fair, differ = [], False
    for name, (measure, _about) in measures.items():
        # Scores on different sets of rows are not ranked.
        if len({of_rows for of_rows, of_run in zip(sets, scores, strict=True) if name in of_run}) == 1:
            fair.append(measure)
        else:
            fair.append(replace(measure, marked=False))
            differ = differ or (measure.marked and measure.better is not None)
    groups = scores_over_seeds([one.config for one in runs], scores, fair)
    heads = [group_name([runs[number].name for number in group.runs]) for group in groups]
    return Scores(groups, heads, measures, measured, differ)


def validation_sets(runs: Sequence[Compared]) -> list[int]:
    """Return the number of each run's set of validation rows. Equal sets have equal numbers."""
    firsts: list[tuple[tuple[object, ...], dict[int, tuple[str, str]]]] = []
    found = []
    for one in runs:
        task, probe = one.config.task, one.run.probe
        # Sampling and noise affect training rows only. Replays keep no folders.
        names = [path and PureWindowsPath(path).name for path in (task.path, task.test_path)]
        settings = (task.id, names, task.reading, task.drop, task.validation_size)
        shown: dict[int, tuple[str, str]] = {}  # rows on the run's map, as files of the same name may differ
        if probe is not None:
            rows = list(zip(probe.ids, probe.texts, probe.labels, strict=True))[: probe.held_out]
            shown = {number: (text, probe.classes[label]) for number, text, label in rows}
        alike = (
            number
            for number, (others_settings, others) in enumerate(firsts)
            if settings == others_settings and all(others[i] == shown[i] for i in others.keys() & shown.keys())
        )
        found.append(next(alike, len(firsts)))
        if found[-1] == len(firsts):
            firsts.append((settings, shown))
    return found


@in_language(ENGLISH)
def scores_csv(store: Store, runs: Sequence[Compared]) -> bytes:
    """Return the scores as CSV in English: one row per measure and group of seeds, shares from 0 to 1."""
    found = _scores_of(store, runs)
    return csv_file(
        [
            {
                "Measure": measure.label,
                "Runs": head,
                "Mean": str(spread.mean),
                "Standard deviation": "" if spread.std is None else str(spread.std),
                "Seeds": str(spread.seeds),
                "How it is measured": about,
            }
            for name, (measure, about) in found.measures.items()
            for head, group in zip(found.heads, found.groups, strict=True)
            if (spread := group.scores[name]) is not None
        ]
    )


def spread_text(spread: Spread | None, name: str, seeds: int) -> str:
    """Format a mean with its standard deviation, if known, and the number of seeds if some lack the score."""
    if spread is None:
        return "–"
    write = percent if name.rpartition(".")[2] in SHARES else partial(signed, decimals=3)
    write = "{:,.0f}".format if name == PROBE_COUNT.name else write
    deviation = f" ± {write(spread.std)}" if spread.std is not None else ""
    text = f"{BEST if spread.best else ''}{write(spread.mean)}{deviation}"
    if spread.seeds >= seeds:
        return text
    return _("{score} ({known} of {total} seeds)", score=text, known=spread.seeds, total=seeds)


def _measures() -> dict[str, tuple[Measure, str]]:
    """Return every possible measure and how it is measured, by name."""
    found = {}
    of_probe = _(OF_PROBE_ABOUT, rows=PROBE_ROWS)
    for split, (label, label_of_probe, about) in SPLITS.items():
        for score in SCORES.values():
            named = _(score.label) if score.name == "macro_f1" else in_phrase(_(score.label))
            name, of_classifier = f"{split}.{score.name}", _(label, measure=named)
            found[name] = (Measure(name, of_classifier, score.better, marked=split != TEST), _(about))
            name, by_probe = f"{split}.{OF_PROBE}{score.name}", _(label_of_probe, measure=named)
            found[name] = (Measure(name, by_probe, score.better, marked=split != TEST), sentences([_(about), of_probe]))
    found[PROBE.name] = (replace(PROBE, label=_(PROBE.label)), _(PROBE_ABOUT))
    about = _("Scores of probes that were fitted on different numbers of rows are not comparable.")
    found[PROBE_COUNT.name] = (replace(PROBE_COUNT, label=_(PROBE_COUNT.label)), about)
    found[PROBE_TEST.name] = (replace(PROBE_TEST, label=_(PROBE_TEST.label)), _("Test accuracy of the same probe."))
    for entry in METRICS.values():
        better = None if entry.better == "neither" else entry.better
        found[entry.name] = (Measure(entry.name, _(entry.label), better), _(entry.settings))
    return found


def _measured(one: Compared) -> Path:
    """Return the representation measures of a run by step."""
    known = {} if one.frames is None else run_reads.measures(one.frames)
    return {step: found.values for step, found in known.items() if found.values}


def _seeds(group: SeedGroup, runs: Sequence[Compared]) -> int:
    return len({runs[number].config.seed for number in group.runs})


def _legend(found: Scores, runs: Sequence[Compared]) -> str:
    words = [
        _(
            "↑ higher is better, ↓ lower is better. ★ marks the best score of a row; the difference may still be "
            "chance. Test scores are not marked: choose a run by its validation scores, then report its test "
            "scores."
        )
    ]
    if found.rows_differ:
        words.append(_("Validation scores have no ★ here, because the runs were scored on different validation rows."))
    gathered = [group for group in found.groups if len(group.runs) > 1]
    if gathered:
        words.append(_("Averages get ★ only if all columns have the same seeds."))
        counts = join_list(ngettext("{count} seed", "{count} seeds", _seeds(group, runs)) for group in gathered)
        words.append(
            _(
                "Runs that differ only in the seed share a column: mean ± standard deviation over {seeds}.",
                seeds=counts,
            )
        )
    if found.measured:
        words.append(
            _(
                "Representation measures are computed on the validation texts that the map shows, at step {steps}.",
                steps=join_list(f"{step:,}" for step in sorted(found.measured)),
            )
        )
    return sentences(words)


def _table(table: pd.DataFrame, *, pinned: str, wide: str | None = None) -> None:
    """Draw a table. Args: pinned, wide: columns with a translated name; all others are runs."""
    columns = {str(name): st.column_config.TextColumn(width=150) for name in table.columns}
    columns[pinned] = st.column_config.TextColumn(_(pinned), width=220, pinned=True)
    if wide is not None:
        columns[wide] = st.column_config.TextColumn(_(wide), width=620)
    key = f"compare.table.{pinned}"
    st.dataframe(table, hide_index=True, placeholder="", column_config=columns, height="content", key=key)
