"""Agreement of runs on the same examples: those that one run got right and the other wrong, and vice versa."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.representation.geometry import Whole

Classes = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PairAgreement:
    """Run A (`first`) against run B (`second`), by their numbers.

    Attributes:
        both, only_first, only_second, neither: numbers of examples that both, only A, only B or neither got right.
        fixed: the `only_second` examples that A got wrong and B right, "fixed by B".
        broken: the `only_first` examples that A got right and B wrong, "broken by B".
        kappa: Cohen's kappa of the predictions; None without predictions, or if both runs predict one class throughout.
        mcnemar_p: p of the exact two-sided McNemar test that A and B err equally often. It is a binomial test of
            `only_first` among `only_first + only_second` at 1/2; 1 if the runs never differ.
    """

    first: int
    second: int
    both: int
    only_first: int
    only_second: int
    neither: int
    fixed: Whole
    broken: Whole
    kappa: float | None
    mcnemar_p: float


class MeanStd(NamedTuple):
    """Mean and sample standard deviation (n − 1), which is None for a single value."""

    mean: float
    std: float | None


def agreement(correct: ArrayLike, predicted: ArrayLike | None = None) -> tuple[PairAgreement, ...]:
    """Compare every pair of runs, example by example, in the order (0, 1), (0, 2), …, (1, 2), ….

    Args:
        correct: [R, N] bool, whether run r got example n right.
        predicted: [R, N] classes, for Cohen's kappa.
    Raises: ValueError naming the argument, its value and what is expected.
    Source: McNemar 1947; Cohen 1960.
    """
    right = np.asarray(correct)
    if right.ndim != 2:
        raise ValueError(f"correct = shape {list(right.shape)}: expected a shape [R, N]")
    right = right.astype(bool)
    given = None if predicted is None else np.asarray(predicted)
    if given is not None and given.shape != right.shape:
        raise ValueError(f"predicted = shape {list(given.shape)}: expected that of correct, {list(right.shape)}")
    return tuple(
        _pair(right, first, second, None if given is None else _kappa(given[first], given[second]))
        for first, second in combinations(range(len(right)), 2)
    )


def mean_std(values: Sequence[float]) -> MeanStd:
    """Compute the mean and standard deviation over seeds. Raises: ValueError for no values."""
    if not len(values):
        raise ValueError("values = none: expected at least one")
    numbers = np.asarray(values, np.float64)
    return MeanStd(float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else None)


def _pair(right: NDArray[np.bool_], first: int, second: int, kappa: float | None) -> PairAgreement:
    a, b = right[first], right[second]
    fixed, broken = np.flatnonzero(~a & b), np.flatnonzero(a & ~b)
    return PairAgreement(
        first=first,
        second=second,
        both=int((a & b).sum()),
        only_first=len(broken),
        only_second=len(fixed),
        neither=int((~a & ~b).sum()),
        fixed=fixed,
        broken=broken,
        kappa=kappa,
        mcnemar_p=_mcnemar(len(broken), len(fixed)),
    )


def _kappa(a: Classes, b: Classes) -> float | None:
    """Cohen's kappa of two lists of classes [N]: agreement beyond what their frequencies give by chance."""
    classes, numbers = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(classes) < 2:
        return None
    shares = [np.bincount(part, minlength=len(classes)) / len(a) for part in np.split(numbers, 2)]
    by_chance = float(shares[0] @ shares[1])
    return (float((a == b).mean()) - by_chance) / (1 - by_chance)


def _mcnemar(only_first: int, only_second: int) -> float:
    from scipy.stats import binomtest

    differing = only_first + only_second
    return float(binomtest(only_first, differing, 0.5).pvalue) if differing else 1.0
