"""Agreement of two runs on the same examples, and the mean and deviation of scores over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.representation.geometry import Whole

Classes = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PairAgreement:
    """Comparison of run A (the first) with run B (the second).

    Attributes:
        both, only_first, only_second, neither: numbers of examples that both, only A, only B or neither got right.
        fixed: the `only_second` examples that A got wrong and B right, "fixed by B".
        broken: the `only_first` examples that A got right and B wrong, "broken by B".
        kappa: Cohen's kappa of the predictions; None without predictions, or if both runs predict one class throughout.
        mcnemar_p: p of the exact two-sided McNemar test that A and B err equally often. It is a binomial test of
            `only_first` among `only_first + only_second` at 1/2; 1 if the runs never differ.
    """

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


def agreement(correct: ArrayLike, predicted: ArrayLike | None = None) -> PairAgreement:
    """Compare two runs, example by example.

    Args:
        correct: [2, N] bool, whether run r got example n right.
        predicted: [2, N] classes, for Cohen's kappa.
    Source: McNemar 1947; Cohen 1960.
    """
    from scipy.stats import binomtest

    a, b = np.asarray(correct).astype(bool)
    fixed, broken = np.flatnonzero(~a & b), np.flatnonzero(a & ~b)
    differing = len(broken) + len(fixed)
    return PairAgreement(
        both=int((a & b).sum()),
        only_first=len(broken),
        only_second=len(fixed),
        neither=int((~a & ~b).sum()),
        fixed=fixed,
        broken=broken,
        kappa=None if predicted is None else _kappa(*np.asarray(predicted)),
        mcnemar_p=float(binomtest(len(broken), differing, 0.5).pvalue) if differing else 1.0,
    )


def mean_std(values: Sequence[float]) -> MeanStd:
    """Compute the mean and sample standard deviation of at least one value, one per seed."""
    numbers = np.asarray(values, np.float64)
    return MeanStd(float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else None)


def _kappa(a: Classes, b: Classes) -> float | None:
    """Compute Cohen's kappa of two lists of classes [N]; None if only one class occurs."""
    classes, numbers = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(classes) < 2:
        return None
    shares = [np.bincount(part, minlength=len(classes)) / len(a) for part in np.split(numbers, 2)]
    by_chance = float(shares[0] @ shares[1])
    return (float((a == b).mean()) - by_chance) / (1 - by_chance)
