"""Scores of several runs: mean ± standard deviation over runs that differ only in the seed, with the best marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.config import RunConfig
from core.config.compare import SEED, config_differences
from core.config.describe import settings
from core.events import SPEARMAN
from core.messages import N_
from core.representation.agreement import mean_std

Better = Literal["higher", "lower"]

# Relative and absolute tolerance, because rounding makes equal means over seeds differ in their last bits.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Measure:
    """A score: its name in the runs, its label, and the better direction (None if neither is better).

    Attributes:
        marked: whether the best value is marked. Test scores are not, because choosing a run by them fits the choice
            to the test split.
    """

    name: str
    label: str
    better: Better | None
    marked: bool = True


SCORES: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("accuracy", N_("Accuracy"), "higher"),
        Measure("macro_f1", N_("Macro-F1"), "higher"),
        Measure("cross_entropy", N_("Cross-entropy, nats"), "lower"),
        Measure(SPEARMAN, N_("Rank correlation (Spearman's ρ)"), "higher"),
    )
}


@dataclass(frozen=True, slots=True)
class Spread:
    """A score over seeds.

    Attributes:
        mean: over seeds.
        std: sample standard deviation over seeds, n − 1; None for one seed.
        seeds: number of seeds that have the score.
        best: whether no other group has a better mean; False unless all groups have the same seeds. It does not imply
            significance: with few seeds, compare the ranges mean ± std.
    """

    mean: float
    std: float | None
    seeds: int
    best: bool = False


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """Numbers of the runs that differ only in the seed, and their scores by name (None if no run has the score)."""

    runs: tuple[int, ...]
    scores: Mapping[str, Spread | None]


def seed_groups(configs: Sequence[RunConfig]) -> tuple[tuple[int, ...], ...]:
    """Group the numbers of runs that differ only in the seed; groups are in the order of their first run."""
    found = [settings(config) for config in configs]
    groups: list[list[int]] = []
    for number, config in enumerate(configs):
        for group in groups:
            first = group[0]
            differing = config_differences((configs[first], config), (found[first], found[number]))
            if {difference.path for difference in differing} <= {SEED}:
                group.append(number)
                break
        else:
            groups.append([number])
    return tuple(map(tuple, groups))


def scores_over_seeds(
    configs: Sequence[RunConfig], scores: Sequence[Mapping[str, float | None]], measures: Sequence[Measure]
) -> tuple[SeedGroup, ...]:
    """Build the table of scores, with one row per group of runs that differ only in the seed.

    Runs of one group with the same seed count once, by their mean. A missing or non-finite score is left out, and
    `seeds` counts the rest. The best mean of a measure is marked, ties included, if at least two groups have the
    measure, all from the same seeds.

    Args:
        scores: one mapping per run, by the measures' names.
    """
    groups = seed_groups(configs)
    columns = {measure.name: _column(groups, configs, scores, measure) for measure in measures}
    return tuple(
        SeedGroup(group, {name: column[row] for name, column in columns.items()}) for row, group in enumerate(groups)
    )


def best(values: Sequence[float | None], better: Better | None) -> tuple[bool, ...]:
    """Return True for each best value, ties included; all False if fewer than two values are comparable."""
    known = [value for value in values if value is not None]
    if better is None or len(known) < 2:
        return (False,) * len(values)
    top = max(known) if better == "higher" else min(known)
    return tuple(value is not None and math.isclose(value, top, rel_tol=TIE, abs_tol=TIE) for value in values)


def _column(
    groups: Sequence[Sequence[int]],
    configs: Sequence[RunConfig],
    scores: Sequence[Mapping[str, float | None]],
    measure: Measure,
) -> list[Spread | None]:
    """Return the spread of each group in one measure, with the best marked if the comparison is fair."""
    by_seed: list[dict[int, list[float]]] = [{} for _group in groups]
    for of_seed, group in zip(by_seed, groups, strict=True):
        for run in group:
            value = scores[run].get(measure.name)
            if value is not None and math.isfinite(value):
                of_seed.setdefault(configs[run].seed, []).append(value)
    found = [mean_std([mean_std(same).mean for same in of_seed.values()]) if of_seed else None for of_seed in by_seed]
    fair = measure.marked and len({frozenset(of_seed) for of_seed in by_seed if of_seed}) == 1
    marks = best([one.mean if one else None for one in found], measure.better if fair else None)
    return [
        Spread(one.mean, one.std, len(of_seed), mark) if one else None
        for one, of_seed, mark in zip(found, by_seed, marks, strict=True)
    ]
