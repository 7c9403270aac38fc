"""Results of an experiment: the score of each cell over seeds, and its paired difference from its baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from core.artifacts.measures import read_measures
from core.artifacts.seeds import SCORES, Measure
from core.errors import StoreError
from core.events import BASELINE, BASELINE_TEST, SPEARMAN, TEST, VALIDATION, Evaluation
from core.experiments.design import Cell, Design
from core.messages import N_
from core.representation.agreement import PairAgreement, agreement, mean_std
from core.representation.metrics import METRICS
from core.representation.paired import LEVEL, NOTHING, PairedDifference, holm, paired_difference, seeds_needed
from core.representation.recall import class_groups
from core.store import ExperimentRun, ExperimentTable, Status, Store
from core.tasks.registry import TASKS
from core.workers.run_rows import majority_rate, train_counts

SPLITS = {TEST: N_("Test"), VALIDATION: N_("Validation")}
# Measures of the vectors of the validation rows at the last frame.
OF_VECTORS: Mapping[str, Measure] = {
    entry.name: Measure(entry.name, entry.label, None if entry.better == "neither" else entry.better)
    for entry in METRICS.values()
    if entry.measure is not None
}
# Costs of a run, which belong to no split.
COSTS: Mapping[str, Measure] = {
    "peak_memory": Measure("peak_memory", N_("Peak memory, MB"), "lower"),
    "seconds": Measure("seconds", N_("Duration, seconds"), "lower"),
}
# Recall of the classes with the most and with the fewest training rows, by the name of the group and "_recall".
OF_GROUPS: Mapping[str, Measure] = {
    "head_recall": Measure("head_recall", N_("Recall of the head"), "higher"),
    "tail_recall": Measure("tail_recall", N_("Recall of the tail"), "higher"),
}
MEASURES: Mapping[str, Measure] = {**SCORES, **OF_GROUPS, **OF_VECTORS, **COSTS}
# Scores that are means over examples, so that two runs can be compared example by example.
BY_EXAMPLE = ("accuracy", "cross_entropy", *OF_GROUPS)
Verdict = Literal["higher", "lower", "no difference shown"]
VERDICTS: Mapping[Verdict, str] = {
    # Translators: a score, than another.
    "higher": N_("higher"),
    # Translators: a score, than another.
    "lower": N_("lower"),
    "no difference shown": N_("no difference shown"),
}

Values = NDArray[np.float64]


class Reference(NamedTuple):
    """Reference scores on the displayed split without training the encoder; None if unknown.

    Attributes:
        probe: score of the linear probe of the untrained encoder, in the displayed measure; for Spearman's ρ, that of
            the untrained encoder itself.
        majority: accuracy of predicting the most common training class.
    """

    probe: float | None = None
    majority: float | None = None


class MainEffect(NamedTuple):
    """Means per level of one axis, over seeds and over combinations of the other axes' levels.

    Attributes:
        axis: number of the axis.
        means: one per level, each over the combinations that have a score at every level of the axis.
        combinations, of: number of these combinations, and of all combinations; both 1 if there is no other axis.
    """

    axis: int
    means: tuple[float, ...]
    combinations: int
    of: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a cell with its baseline, over the seeds that both have.

    Attributes:
        baseline: the number of the baseline cell.
        corrected_p: Holm-corrected p over all comparisons of the table; None for one seed.
        seeds_needed: number of seeds that would show this difference with the same number of comparisons; None if a
            thousand would not suffice, or if there is only one seed.
    """

    baseline: int
    difference: PairedDifference
    corrected_p: float | None
    seeds_needed: int | None

    @property
    def is_zero(self) -> bool:
        """True if the means are equal."""
        return abs(self.difference.mean) <= NOTHING

    @property
    def is_zero_throughout(self) -> bool:
        """True if no seed or example differs, so that the bootstrap interval has no width."""
        return self.is_zero and self.difference.low == self.difference.high

    @property
    def verdict(self) -> Verdict:
        if self.corrected_p is None or self.corrected_p > LEVEL:
            return "no difference shown"
        return "higher" if self.difference.mean > 0 else "lower"


@dataclass(frozen=True, slots=True)
class CellResult:
    """Results of one cell.

    Attributes:
        title: title of the cell in the user's language.
        scores: score of each run that has one, by seed.
        mean, std: mean and sample standard deviation (n − 1) over seeds; None without a score, `std` also for one seed.
        by_probe: True if any score is that of a linear probe, because the classifier was never trained.
        runs: all runs of the cell, with any status.
        reference: means over the seeds that have a score.
    """

    cell: Cell
    title: str
    scores: Mapping[int, float]
    mean: float | None
    std: float | None
    comparison: Comparison | None
    by_probe: bool
    runs: tuple[ExperimentRun, ...]
    reference: Reference

    @property
    def seeds(self) -> int:
        return len(self.scores)


class Tuned(NamedTuple):
    """Test scores if every seed takes the cell of the grid that is best on its validation rows.

    Attributes:
        chosen: number of seeds by title of the chosen cell, the most frequent first.
        scores: test score by seed.
        difference: from the reference cell, paired over seeds; None without a common seed.
    """

    chosen: Mapping[str, int]
    scores: Mapping[int, float]
    difference: PairedDifference | None


@dataclass(frozen=True, slots=True)
class Results:
    """A table of cells, in the order of the design.

    Attributes:
        ended_early: number of runs stopped for low scores.
        withheld: True if full runs order the cells of this surface differently, so that it has no main effects.
        tuned: test scores of cells chosen on validation; None for another split, or a design without a reference cell.
    """

    design: Design
    measure: Measure
    split: str
    cells: tuple[CellResult, ...]
    ended_early: int = 0
    withheld: bool = False
    tuned: Tuned | None = None

    @property
    def comparisons(self) -> list[Comparison]:
        return [cell.comparison for cell in self.cells if cell.comparison is not None]

    @property
    def best(self) -> CellResult | None:
        """The cell with the best mean; None without a score, or if neither direction is better."""
        sign = {"higher": 1, "lower": -1}.get(self.measure.better or "", 0)
        scored = [cell for cell in self.cells if cell.mean is not None]
        return max(scored, key=lambda cell: sign * (cell.mean or 0.0)) if scored and sign else None

    @property
    def over_seeds(self) -> bool:
        """True if cells have several seeds. Without them there are no deviations, intervals and tests."""
        return len(self.design.seeds) > 1

    def is_worse(self, difference: float) -> bool:
        """Return True if a difference is for the worse; if neither direction is better, if it is negative."""
        return difference > 0 if self.measure.better == "lower" else difference < 0

    def is_worse_than_probe(self, cell: CellResult) -> bool:
        """Return True if the mean of a cell is worse than the linear probe of the untrained encoder."""
        probe = cell.reference.probe
        return cell.mean is not None and probe is not None and self.is_worse(cell.mean - probe)

    @property
    def main_effects(self) -> list[MainEffect]:
        """Main effects of all axes with several levels, if some combination has a score at every level."""
        if self.withheld:
            return []
        means = [cell.mean for cell in self.cells if cell.cell.levels is not None]
        grid, found = np.array(means, np.float64).reshape(self.design.shape), list[MainEffect]()  # NaN without a score
        for axis, levels in enumerate(grid.shape):
            table = np.moveaxis(grid, axis, -1).reshape(-1, levels)
            whole = table[~np.isnan(table).any(axis=1)]
            if levels > 1 and len(whole):
                found.append(MainEffect(axis, tuple(map(fmean, whole.T.tolist())), len(whole), len(table)))
        return found


def results(
    store: Store,
    experiment_id: str,
    design: Design,
    *,
    measure: str,
    split: str,
    runs: Sequence[ExperimentRun] | None = None,
) -> Results:
    """Compute the results of the finished runs.

    Args:
        measure: one of MEASURES.
        split: "test" or "validation", scored at the last frame. Measures of vectors always use validation rows, and
            costs no rows.
        runs: the runs to compare; all of the experiment if None.
    """
    table = ExperimentTable(store.folder)
    runs = table.runs(experiment_id) if runs is None else runs
    finished = [(run.run_id, run) for run in runs if run.run_id is not None and run.status == Status.FINISHED]
    probes = table.scores(experiment_id, BASELINE_TEST if split == TEST else BASELINE)
    scores, known = dict[str, Evaluation](), dict[str, Reference]()
    for run_id, run in finished:
        probe = probes[run_id].values.get(measure) if run_id in probes else None
        majority = _majority_rate(store, run_id, run.begun_attempt, split) if measure == "accuracy" else None
        known[run_id] = Reference(probe, majority)
        if measure in OF_VECTORS and (vectors := vector_measures(store, run)) is not None:
            scores[run_id] = vectors
        elif measure in COSTS:
            memory = {} if run.peak_memory is None else {"peak_memory": run.peak_memory / 2**20}
            scores[run_id] = Evaluation(run.last_step, VALIDATION, {**memory, "seconds": run.seconds})
        elif measure in OF_GROUPS and (found := _outcomes(store, run_id, run.begun_attempt, measure, split)):
            scores[run_id] = Evaluation(run.last_step, split, {measure: float(found[0].mean())})
    scores = scores if measure not in SCORES else table.scores(experiment_id, split)
    shown = compute_results(store, design, runs, scores, known, measure=measure, split=split)
    return replace(shown, tuned=_tuned(shown, table.scores(experiment_id, VALIDATION))) if split == TEST else shown


def _tuned(test: Results, validation: Mapping[str, Evaluation]) -> Tuned | None:
    """Choose a cell for every seed that has all validation scores; the first of equals. None without such a seed."""
    grid = [cell for cell in test.cells if cell.cell.levels is not None]
    others = [cell for cell in test.cells if cell.cell.levels is None]
    if not others or len(grid) < 2 or test.measure.better is None:
        return None
    sign, scores, titles = (1 if test.measure.better == "higher" else -1), dict[int, float](), list[str]()
    for seed in test.design.seeds:
        runs = [next((run for run in cell.runs if run.seed == seed), None) for cell in grid]
        known = [None if run is None else validation.get(str(run.run_id)) for run in runs]
        values = [None if one is None else one.values.get(test.measure.name) for one in known]
        if any(value is None or seed not in cell.scores for value, cell in zip(values, grid, strict=True)):
            continue
        best = max(range(len(grid)), key=lambda place: sign * (values[place] or 0.0))
        scores[seed] = grid[best].scores[seed]
        titles.append(grid[best].title)
    if not scores:
        return None
    common = [seed for seed in scores if seed in others[0].scores]
    pair = ([scores[seed] for seed in common], [others[0].scores[seed] for seed in common])
    return Tuned(dict(Counter(titles).most_common()), scores, paired_difference(*pair) if common else None)


@lru_cache(maxsize=2_048)
def _majority_rate(store: Store, run_id: str, attempt: int, split: str) -> float | None:
    return majority_rate(store.folder, store.run(run_id), split)


def measures_of(design: Design) -> Mapping[str, Measure]:
    """Return the measures that a design can be compared by.

    Recall of head and tail needs imbalanced classes, and Spearman's ρ similarity scores, which no bundled task has.
    """
    levels = [level for axis in design.axes for level in axis.levels]
    extra = [level.settings for level in (*levels, *([design.reference] if design.reference else []))]
    imbalanced = max([design.base.task.imbalance, *(settings.get("task.imbalance", 1) for settings in extra)]) > 1
    left_out = {*(() if imbalanced else OF_GROUPS), *((SPEARMAN,) if design.base.task.id in TASKS else ())}
    return {name: measure for name, measure in MEASURES.items() if name not in left_out}


def usual_measure(design: Design) -> str:
    """Return the measure that a design without a protocol is compared by."""
    terms = [term for phase in design.base.phases for term in phase.objective.terms]
    return SPEARMAN if any(term.entry.reads == "scores" for term in terms) else "accuracy"


def vector_measures(store: Store, run: ExperimentRun) -> Evaluation | None:
    """Return the vector measures of a finished run's last frame; None if they have not been computed."""
    if run.status != Status.FINISHED or run.run_id is None:
        return None
    found = read_measures(store.run_folder(run.run_id), run.begun_attempt, run.last_step)
    if found is None or not found.values:
        return None
    known = {name: value for name, value in found.values.items() if value is not None}
    return Evaluation(run.last_step, VALIDATION, known)


def compute_results(
    store: Store,
    design: Design,
    runs: Sequence[ExperimentRun],
    scores: Mapping[str, Evaluation],
    known: Mapping[str, Reference] = MappingProxyType({}),
    *,
    measure: str,
    split: str,
) -> Results:
    """Compute results from given runs, scores and references. Args: scores, known: by run id."""
    by_cell: dict[int, list[ExperimentRun]] = {}
    for run in runs:
        by_cell.setdefault(run.cell, []).append(run)
    cells = [_cell(design, cell, tuple(by_cell.get(cell.number, ())), scores, known, measure) for cell in design.cells]
    compared = {number: _compared(store, design, cell, cells, measure, split) for number, cell in enumerate(cells)}
    found = {number: pair for number, pair in compared.items() if pair is not None}
    corrected = iter(holm([difference.p for _, difference in found.values() if difference.p is not None]))
    for number, (baseline, difference) in found.items():
        p = None if difference.p is None else next(corrected)
        comparison = Comparison(baseline, difference, p, seeds_needed(difference, LEVEL / len(found)))
        cells[number] = replace(cells[number], comparison=comparison)
    early = sum(run.ended_early for run in runs)
    shown = VALIDATION if measure in OF_VECTORS or measure in COSTS else split
    return Results(design, MEASURES[measure], shown, tuple(cells), early)


def _cell(
    design: Design,
    cell: Cell,
    runs: tuple[ExperimentRun, ...],
    scores: Mapping[str, Evaluation],
    known: Mapping[str, Reference],
    measure: str,
) -> CellResult:
    found: dict[int, float] = {}
    beaten: list[Reference] = []
    by_probe = False
    for run in runs:
        evaluation = scores.get(run.run_id or "") if run.status == Status.FINISHED else None
        value = None if evaluation is None else evaluation.values.get(measure)
        if evaluation is not None and value is not None and math.isfinite(value):
            found[run.seed] = value
            beaten.append(known.get(run.run_id or "", Reference()))
            by_probe |= evaluation.probe_rows is not None
    mean, std = mean_std(list(found.values())) if found else (None, None)
    reference = Reference(_mean(one.probe for one in beaten), _mean(one.majority for one in beaten))
    return CellResult(cell, design.spoken_title(cell), found, mean, std, None, by_probe, runs, reference)


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None


def _compared(
    store: Store, design: Design, ours: CellResult, cells: Sequence[CellResult], measure: str, split: str
) -> tuple[int, PairedDifference] | None:
    """Return the number of a cell's baseline, and the difference over the seeds that both have; None without seeds.

    The difference is computed example by example if the predictions of both are stored.
    """
    baseline = design.baseline_of(ours.cell)
    if baseline is None:
        return None
    pair = (ours, cells[baseline.number])
    seeds = [seed for seed in ours.scores if all(seed in cell.scores for cell in pair)]
    if not seeds:
        return None
    by_seed = [{run.seed: (str(run.run_id), run.begun_attempt) for run in cell.runs} for cell in pair]
    both = _by_example(store, [of_cell[seed] for of_cell in by_seed for seed in seeds], measure, split)
    if both is not None:
        return baseline.number, paired_difference(*np.split(both, 2))
    return baseline.number, paired_difference(*([cell.scores[seed] for seed in seeds] for cell in pair))


def pair_agreement(store: Store, first: tuple[str, int], second: tuple[str, int], split: str) -> PairAgreement | None:
    """Compare two finished runs on the rows of a split, row by row.

    Args:
        first, second: id of each run, and number of its attempt.
    Returns: None unless both have stored predictions for the same rows.
    """
    correct = _by_example(store, [first, second], "accuracy", split)
    return None if correct is None else agreement(correct)


def _by_example(store: Store, runs: Sequence[tuple[str, int]], measure: str, split: str) -> Values | None:
    """Return [R, E] scores of the examples of runs, given by id and attempt; None unless all have the same labels."""
    if measure not in BY_EXAMPLE:
        return None
    found = [_outcomes(store, *run, measure, split) for run in runs]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or len({labels for _, labels in known}) != 1:
        return None
    return np.stack([values for values, _ in known])


@lru_cache(maxsize=2_048)
def _outcomes(
    store: Store, run_id: str, attempt: int, measure: str, split: str
) -> tuple[Values, tuple[int, ...]] | None:
    """Return the score of each example of a finished run, and the labels; None if missing or damaged.

    Without stored predictions, validation uses the last frame, if it covers the whole split. Recall of a group uses the
    examples of its classes.
    """
    try:
        if (kept := store.predictions(run_id, split)) is not None:
            logits, labels = kept.logits, kept.labels
        elif split == TEST:
            return None
        else:
            run, steps = store.run(run_id), store.frame_steps(run_id)
            if run.probe is None or not steps or run.probe.held_out != run.config.task.validation_size:
                return None
            held_out = run.probe.held_out
            logits, labels = store.logits(run_id, steps[-1])[:held_out], run.probe.labels[:held_out]
    except StoreError:
        return None
    truth = np.asarray(labels)
    if measure == "accuracy":
        return (logits.argmax(1) == truth).astype(np.float64), labels
    if measure in OF_GROUPS:
        config = store.run(run_id).config
        counts = train_counts(store.folder, config.task, config.seed)
        group = class_groups(counts).get(measure.removesuffix("_recall"), ()) if counts else ()
        rows = np.flatnonzero(np.isin(truth, group))
        if not len(rows):
            return None
        right = logits.argmax(1)[rows] == truth[rows]
        return right.astype(np.float64), tuple(truth[rows].tolist())
    return -log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(truth)), truth], labels
