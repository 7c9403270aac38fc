"""Agreement of two runs, against loops, scikit-learn's kappa and an explicit binomial sum."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from core.representation.agreement import agreement, mean_std
from tests.cases import each


def binomial_p(few: int, total: int) -> float:
    """Return the two-sided p: the probability of all outcomes that are at most as likely as this one, in integers."""
    ways = [math.comb(total, i) for i in range(total + 1)]
    return sum(way for way in ways if way <= ways[few]) / 2**total


def test_two_runs_are_counted_as_a_loop_counts() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=60)
    predicted = np.where(rng.random((2, 60)) < 0.6, labels, rng.integers(0, 3, size=(2, 60)))
    found = agreement(predicted == labels, predicted)
    a, b = (predicted == labels).tolist()
    assert found.both == sum(x and y for x, y in zip(a, b, strict=True))
    assert found.neither == sum(not x and not y for x, y in zip(a, b, strict=True))
    assert found.fixed.tolist() == [i for i in range(60) if b[i] and not a[i]]
    assert found.broken.tolist() == [i for i in range(60) if a[i] and not b[i]]
    assert (found.only_first, found.only_second) == (len(found.broken), len(found.fixed))
    assert found.kappa == pytest.approx(cohen_kappa_score(*predicted))
    assert found.mcnemar_p == pytest.approx(binomial_p(found.only_first, found.only_first + found.only_second))


@each(("broken", "fixed", "p"), [(0, 5, 2 / 32), (1, 3, 10 / 16), (4, 4, 1.0), (0, 0, 1.0)])
def test_the_p_value_is_exact_and_two_sided(broken: int, fixed: int, p: float) -> None:
    first = [True] * broken + [False] * fixed + [True] * 3
    second = [False] * broken + [True] * fixed + [True] * 3
    assert agreement([first, second]).mcnemar_p == pytest.approx(p)
    assert agreement([second, first]).mcnemar_p == pytest.approx(p)


@each(
    ("predicted", "kappa"),
    [([[0, 1], [1, 0]], -1), ([[0, 0], [0, 1]], 0), ([[0, 1], [0, 1]], 1), ([[1, 1], [1, 1]], None), (None, None)],
)
def test_kappa_goes_from_opposite_to_equal_predictions(predicted: list[list[int]] | None, kappa: float | None) -> None:
    found = agreement([[True, False]] * 2, predicted).kappa
    assert found == (None if kappa is None else pytest.approx(kappa))


def test_no_examples_have_nothing_to_test() -> None:
    found = agreement(np.ones((2, 0), bool), np.zeros((2, 0), int))
    assert (found.both, found.mcnemar_p, found.kappa) == (0, 1, None)


def test_the_deviation_over_seeds_is_that_of_a_sample() -> None:
    values = [0.81, 0.79, 0.84, 0.8]
    assert mean_std(values) == pytest.approx((statistics.mean(values), statistics.stdev(values)))
    assert mean_std([0.5]) == (0.5, None)
