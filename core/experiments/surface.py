"""Surfaces: grids whose cells train at once, in about a minute.

A cell trains the last block, or every block if a contrast reads lower layers, on few rows for few steps. Its config
says so (`executor`), so no experiment takes it for a full run. The validation split is scored; the test split is left
for a full run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.config.edit import LAMBDA, TEMPERATURE, apply_settings
from core.config.plan import plan_phase
from core.errors import ConfigError, PlaygroundError
from core.events import BASELINE, VALIDATION
from core.experiments.design import FIRST_SEED, LEAN, Axis, Cell, Design, Level, axis_of, axis_title, grid_name
from core.experiments.result_table import in_phrase
from core.experiments.results import MEASURES, vector_measures
from core.messages import N_, Message, Text, _, clauses
from core.models.source import encoder_shape
from core.quantities import signed
from core.representation.paired import PairedDifference, paired_difference
from core.store import ExperimentRun, Status, Store
from core.tasks import TaskData
from core.workers import Engine

SURFACE = "surface"
SIDES = (3, 5)  # fewest and most values of τ and λ
STEPS, TRAIN_ROWS, VALIDATION_ROWS, POINTS = 24, 300, 200, 80
FRAMES = 3
# The default levels: τ in equal ratios around the usual 0.07 to 0.5, and λ from nearly cross-entropy alone to nearly
# contrast alone.
LEVELS: Mapping[str, Mapping[int, tuple[float, ...]]] = {
    TEMPERATURE: {3: (0.05, 0.2, 0.8), 4: (0.05, 0.12, 0.3, 0.8), 5: (0.03, 0.07, 0.15, 0.4, 1.0)},
    LAMBDA: {3: (0.1, 0.5, 0.9), 4: (0.1, 0.4, 0.7, 0.9), 5: (0.1, 0.3, 0.5, 0.7, 0.9)},
}
# Below this number of cells with a full run, or below this correlation, a measure of the surface says nothing.
FEWEST_PAIRS, LEAST_CORRELATION = 5, 0.5

COSTS = N_(
    "{setting} {level}: accuracy is {points} points lower than with {reference} (95% interval: {low} to {high})."
)
GAINS = N_(
    "{setting} {level}: accuracy is {points} points higher than with {reference} (95% interval: {low} to {high})."
)

Correct = NDArray[np.float64]


def surface_design(
    draft: RunConfig,
    data: TaskData,
    axes: Sequence[Axis] = (),
    seeds: Sequence[int] = (FIRST_SEED,),
    *,
    protocol: str = SURFACE,
    baseline: Mapping[str, str] = MappingProxyType({}),
    reference: Level | None = None,
) -> Design:
    """Return the design of a surface.

    Args:
        draft: the run that *Train in full* trains, with the settings of a cell.
        data: all rows of its task.
        axes: τ and λ with three levels each by default.
        protocol, baseline, reference: as in `Design`.
    Raises: ConfigError; EncoderError.
    """
    axes = axes or [axis_of(name, LEVELS[name][3], draft) for name in (TEMPERATURE, LAMBDA)]
    validation = min(VALIDATION_ROWS, len(data.validation))
    small: dict[str, Any] = {
        "executor": SURFACE,
        "trainable.part": "last_blocks",
        "trainable.blocks": 1,
        "steps": STEPS,
        "task.train_size": min(TRAIN_ROWS, len(data.train)),
        "task.validation_size": validation,
        "probe.size": min(POINTS, validation),
        "probe.train_size": 0,
        "probe.frame_steps": [STEPS * number // FRAMES for number in range(1, FRAMES + 1)],
        "micro_batch": None,
    }
    if trains_every_block(draft, axes):
        small["trainable.blocks"] = encoder_shape(draft.encoder.id).blocks
    base = apply_settings(draft, {**LEAN, **small})
    for axis in axes:
        for level in axis.levels:
            changed = apply_settings(base, level.settings)
            # The maps of all cells show the same texts.
            shared = changed.task.id == base.task.id and changed.encoder.id == base.encoder.id
            if not shared or apply_settings(changed, small) != changed:
                raise ConfigError(
                    axis_title(axis, base),
                    level.title,
                    "cells that train at once share it; vary another setting, or train each run in full.",
                )
    return Design(
        name=grid_name(base, axes),
        protocol=protocol,
        base=base,
        axes=tuple(axes),
        seeds=tuple(seeds),
        baseline=dict(baseline),
        reference=reference,
        full=draft,
    )


def trains_every_block(draft: RunConfig, axes: Sequence[Axis]) -> bool:
    """Return True if a contrast reads layers below the last, which are the same in all cells unless they are trained.

    Raises: ConfigError; EncoderError.
    """
    blocks = encoder_shape(draft.encoder.id).blocks
    drafts = [draft, *(apply_settings(draft, level.settings) for axis in axes for level in axis.levels)]
    plans = [plan_phase(one.phases[0].objective.with_tokens(0), blocks) for one in drafts]
    return any(layer < blocks for plan in plans for layer in (*plan.layers, *dict(plan.tokens)))


def full_draft(design: Design, cell: Cell, seed: int) -> RunConfig:
    """Return the draft of the full run with the settings of a cell. Raises: ConfigError."""
    assert design.full is not None
    return design.model_copy(update={"base": design.full}).draft(cell, seed)


@dataclass(frozen=True, slots=True)
class Effect:
    """Difference in validation accuracy between a level and another level, the reference cell, or the probe.

    Attributes:
        difference: mean over the other axis' levels and the seeds.
        low, high: 95% interval over seeds and texts; over texts alone for one seed.
    """

    axis: int
    level: int
    difference: float
    low: float
    high: float


def reference_level(design: Design, axis: int) -> int:
    """Return the level that the others are compared with: the baseline, the draft's own value, or the middle one."""
    labels = [level.label for level in design.axes[axis].levels]
    if (baseline := design.baseline.get(design.axes[axis].name)) in labels:
        return labels.index(baseline)
    settings = [level.settings for level in design.axes[axis].levels]
    own = [number for number, one in enumerate(settings) if apply_settings(design.base, one) == design.base]
    return own[0] if own else (len(labels) - 1) // 2


def correct_rows(
    store: Store, design: Design, runs: Sequence[ExperimentRun]
) -> tuple[dict[int, Mapping[int, Correct]], dict[int, Mapping[int, Correct]]]:
    """Read which validation rows the finished cells and their linear probes of the untrained encoder got right.

    A cell that failed, was stopped or could not be created is left out. Cells with other training rows have another
    probe.

    Returns: by seed, [E] per cell number, and the same of the probes; every seed has the same cells. A seed whose cells
        have not all ended, or that lacks a cell which others finished, is left out.
    """
    by_seed: dict[int, Mapping[int, Correct]] = {}
    probes: dict[int, Mapping[int, Correct]] = {}
    for seed in design.seeds:
        of_seed = [run for run in runs if run.seed == seed]
        if len({run.cell for run in of_seed if run.ended}) < len(design.cells):
            continue
        finished = {run.cell: str(run.run_id) for run in of_seed if run.status == Status.FINISHED}
        found, untrained = (
            {cell: rows for cell, run_id in finished.items() if (rows := _correct(store, run_id, split)) is not None}
            for split in (VALIDATION, BASELINE)
        )
        if both := found.keys() & untrained.keys():
            by_seed[seed], probes[seed] = ({cell: rows[cell] for cell in both} for rows in (found, untrained))
    most = max(by_seed.values(), key=len, default={})
    whole = [seed for seed, found in by_seed.items() if found.keys() == most.keys()]
    return {seed: by_seed[seed] for seed in whole}, {seed: probes[seed] for seed in whole}


def _correct(store: Store, run_id: str, split: str) -> Correct | None:
    try:
        found = store.predictions(run_id, split)
    except PlaygroundError:
        return None
    return None if found is None else (found.logits.argmax(1) == np.asarray(found.labels)).astype(np.float64)


def effects(design: Design, by_seed: Mapping[int, Mapping[int, Correct]]) -> list[Effect]:
    """Return the main effect of every level but the reference of its axis, over cells that both levels have.

    If there is a reference cell, the difference of every level from it.

    Args:
        by_seed: from `correct_rows`.
    """
    if design.reference is not None:
        outside = design.cells[-1].number
        if any(outside not in found for found in by_seed.values()):
            return []
        return gains(design, by_seed, {seed: dict.fromkeys(found, found[outside]) for seed, found in by_seed.items()})
    there = next(iter(by_seed.values()))
    number_of = {cell.levels: cell.number for cell in design.cells if cell.number in there and cell.levels is not None}
    found = list[Effect]()
    for axis in range(len(design.axes)):
        reference = reference_level(design, axis)
        twins = {
            number: number_of[other]
            for levels, number in number_of.items()
            if levels[axis] != reference and (other := (*levels[:axis], reference, *levels[axis + 1 :])) in number_of
        }
        others = {seed: {cell: rows[twin] for cell, twin in twins.items()} for seed, rows in by_seed.items()}
        found += _differences(design, axis, by_seed, others)
    return found


def gains(
    design: Design, by_seed: Mapping[int, Mapping[int, Correct]], others: Mapping[int, Mapping[int, Correct]]
) -> list[Effect]:
    """Return the difference of every level from other predictions for the same cells, such as those of a probe.

    Args:
        by_seed: from `correct_rows`.
    """
    return [one for axis in range(len(design.axes)) for one in _differences(design, axis, by_seed, others)]


def _differences(
    design: Design, axis: int, by_seed: Mapping[int, Mapping[int, Correct]], others: Mapping[int, Mapping[int, Correct]]
) -> Iterator[Effect]:
    """Yield the difference of every level of an axis from other predictions, over the cells that have them."""
    there = next(iter(others.values()))
    for level in range(len(design.axes[axis].levels)):
        cells = [
            cell.number
            for cell in design.cells
            if cell.number in there and cell.levels is not None and cell.levels[axis] == level
        ]
        if not cells:
            continue
        # [S, E], the means over the cells
        ours, theirs = (
            np.stack([np.mean([of_seed[cell] for cell in cells], axis=0) for of_seed in rows.values()])
            for rows in (by_seed, others)
        )
        found: PairedDifference = paired_difference(ours, theirs)
        if found.low is not None and found.high is not None:
            yield Effect(axis, level, found.mean, found.low, found.high)
        else:
            by_row = (ours - theirs)[0]
            margin = 1.96 * float(by_row.std(ddof=1)) / len(by_row) ** 0.5
            yield Effect(axis, level, found.mean, found.mean - margin, found.mean + margin)


def main_sentences(design: Design, found: Sequence[Effect], probe: Sequence[Effect]) -> Iterator[Text]:
    """Say in sentences which levels change the accuracy, and which beat the linear probe of the untrained encoder."""
    for axis in range(len(design.axes)):
        title = axis_title(design.axes[axis], design.base)
        reference = (design.reference or design.axes[axis].levels[reference_level(design, axis)]).title
        of_axis = [one for one in found if one.axis == axis]
        shown = [one for one in of_axis if one.low > 0 or one.high < 0]
        if of_axis and not shown:
            yield Message("{setting}: no distinguishable difference in accuracy.", setting=title)
        for one in shown:
            low, high = sorted((abs(one.low), abs(one.high)))
            yield Message(
                COSTS if one.difference < 0 else GAINS,
                setting=title,
                level=design.axes[axis].levels[one.level].title,
                reference=reference,
                points=signed(100 * abs(one.difference), 1),
                low=signed(100 * low, 1),
                high=signed(100 * high, 1),
            )
    if not probe:
        return
    better = [one for one in probe if one.low > 0]
    if len(better) == len(probe):
        yield Message("Every setting beats the linear probe of the encoder before training.")
    elif not better:
        yield Message("No setting is shown to beat the linear probe of the encoder before training.")
    else:
        names = tuple(
            f"{axis_title(design.axes[one.axis], design.base)} {design.axes[one.axis].levels[one.level].title}"
            for one in better
        )
        yield Message("Only these beat the linear probe of the encoder before training: {levels}.", levels=names)


@dataclass(frozen=True, slots=True)
class Summary:
    """The findings of a surface.

    Attributes:
        scores: validation accuracy of every cell, by title and seed.
        ranks: by measure, see `rank_correlations`.
    """

    scores: Mapping[str, Mapping[int, float]]
    sentences: tuple[Text, ...]
    ranks: Mapping[str, float]

    @property
    def withheld(self) -> list[str]:
        """Measures by which full runs order the cells differently, so that the surface says nothing about them."""
        return [measure for measure, rank in self.ranks.items() if rank < LEAST_CORRELATION]


def summarise(
    store: Store, design: Design, runs: Sequence[ExperimentRun], full: Sequence[ExperimentRun] = ()
) -> Summary:
    """Summarise the seeds whose cells have all ended, and compare the order of cells with that of full runs.

    Args:
        full: from `full_runs`.
    """
    by_seed, probes = correct_rows(store, design, runs)
    if not by_seed:
        return Summary({}, (Message("A seed is summarised once all its cells have ended."),), {})
    there = next(iter(by_seed.values()))
    scores = {
        design.title_of(cell): {seed: float(rows[cell.number].mean()) for seed, rows in by_seed.items()}
        for cell in design.cells
        if cell.number in there
    }
    ours = [run for run in runs if run.seed in by_seed and run.cell in there]
    found = Summary(scores, (), rank_correlations(store, ours, full))
    sentences: list[Text] = []
    missing: list[Text] = [design.spoken_title(cell) for cell in design.cells if cell.number not in there]
    ended = Counter(run.seed for run in runs if run.ended)
    missing += [
        Message("seed {seed}", seed=seed)
        for seed in design.seeds
        if seed not in by_seed and ended[seed] == len(design.cells)
    ]
    if missing:
        sentences.append(Message("Left out of this summary: {cells}.", cells=tuple(missing)))
    if "accuracy" not in found.withheld:
        said = [*main_sentences(design, effects(design, by_seed), gains(design, by_seed, probes))]
        sentences += said
        if said and len(by_seed) == 1:
            sentences.append(
                Message("With one seed, these intervals reflect which texts were sampled, not run-to-run variation.")
            )
    if found.ranks:
        ranks = clauses(f"{_name(measure)} {signed(rank, 2)}" for measure, rank in found.ranks.items())
        cells = len({run.cell for run in full} & there.keys())
        sentences.append(
            Message("Rank correlation with the full runs of {cells} cells: {ranks}.", cells=cells, ranks=ranks)
        )
    if found.withheld:
        names = clauses(map(_name, found.withheld))
        words = N_("Below {least}, trust the full runs: {measures}.")
        sentences.append(Message(words, least=LEAST_CORRELATION, measures=names))
    return replace(found, sentences=tuple(sentences))


def _name(measure: str) -> str:
    return in_phrase(_(MEASURES[measure].label))


def full_runs(engine: Engine, design: Design) -> list[ExperimentRun]:
    """Return the finished full runs that exist of each cell and seed."""
    there = {
        run.id: run
        for run in engine.store.runs()
        if run.status == Status.FINISHED and run.config.task.id == design.base.task.id
    }
    if sum(not run.config.on_shared_trunk for run in there.values()) < FEWEST_PAIRS:
        return []  # preparing every cell would take longer than all of the rest
    found = []
    for cell in design.cells:
        for seed in design.seeds:
            with suppress(PlaygroundError):
                config, _data = engine.prepared(full_draft(design, cell, seed))
                run = there.get(engine.store.same_as(config) or "")
                if run is not None:
                    found.append(
                        ExperimentRun(
                            cell.number,
                            seed,
                            run.id,
                            status=run.status,
                            last_step=run.last_step,
                            begun_attempt=run.begun_attempt,
                            ended_at=run.ended_at,
                        )
                    )
    return found


def rank_correlations(
    store: Store, surface: Sequence[ExperimentRun], full: Sequence[ExperimentRun]
) -> dict[str, float]:
    """Return Spearman's rank correlation between the cells of a surface and full runs, by measure.

    The value of a cell is the mean over its runs. Measures of vectors count once they have been computed. A measure of
    fewer than FEWEST_PAIRS cells, or that is constant, is left out.
    """
    from scipy.stats import spearmanr

    found, (ours, theirs) = {}, (_values(store, runs) for runs in (surface, full))
    for measure in MEASURES:
        cells = ours[measure].keys() & theirs[measure].keys()
        pairs = [[fmean(values[measure][cell]) for cell in cells] for values in (ours, theirs)]
        if len(cells) >= FEWEST_PAIRS and all(len(set(values)) > 1 for values in pairs):
            found[measure] = float(spearmanr(*pairs).statistic)
    return found


def _values(store: Store, runs: Sequence[ExperimentRun]) -> dict[str, dict[int, list[float]]]:
    """Return the final validation scores and measures of runs, by measure and cell."""
    found: dict[str, dict[int, list[float]]] = {measure: {} for measure in MEASURES}
    for run in runs:
        scores = [one for one in store.evaluations(str(run.run_id)) if one.split == VALIDATION][-1:]
        for one in (*scores, vector_measures(store, run)):
            for measure, value in one.values.items() if one else ():
                if measure in MEASURES:
                    found[measure].setdefault(run.cell, []).append(value)
    return found
