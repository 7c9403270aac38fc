"""Agreement of runs against loops, scikit-learn's kappa and the binomial sum written out."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from core.representation.agreement import agreement, mean_std
from tests.cases import each

RNG = np.random.default_rng(0)


def made(runs: int = 4, n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    labels = RNG.integers(0, 3, size=n)
    predicted = np.where(RNG.random((runs, n)) < 0.6, labels, RNG.integers(0, 3, size=(runs, n)))
    return predicted == labels, predicted, labels


def binomial_p(few: int, total: int) -> float:
    """Two-sided: the chance of every outcome that is no more likely than this one, in whole numbers."""
    ways = [math.comb(total, i) for i in range(total + 1)]
    return sum(way for way in ways if way <= ways[few]) / 2**total


def test_every_pair_is_counted_as_a_loop_counts() -> None:
    right, predicted, _ = made()
    found = agreement(right, predicted)
    assert [(pair.first, pair.second) for pair in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for pair in found:
        a, b = right[pair.first].tolist(), right[pair.second].tolist()
        assert pair.both == sum(x and y for x, y in zip(a, b, strict=True))
        assert pair.only_first == sum(x and not y for x, y in zip(a, b, strict=True))
        assert pair.only_second == sum(y and not x for x, y in zip(a, b, strict=True))
        assert pair.neither == sum(not x and not y for x, y in zip(a, b, strict=True))
        assert pair.fixed.tolist() == [i for i in range(60) if b[i] and not a[i]]
        assert pair.broken.tolist() == [i for i in range(60) if a[i] and not b[i]]
        assert pair.kappa == pytest.approx(cohen_kappa_score(predicted[pair.first], predicted[pair.second]))
        assert pair.mcnemar_p == pytest.approx(binomial_p(pair.only_first, pair.only_first + pair.only_second))


def test_a_pair_by_hand() -> None:
    (pair,) = agreement([[1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 0]])
    assert (pair.both, pair.only_first, pair.only_second, pair.neither) == (3, 1, 1, 1)
    assert pair.fixed.tolist() == [4]
    assert pair.broken.tolist() == [0]
    assert pair.kappa is None
    assert pair.mcnemar_p == pytest.approx(1)


@each(("broken", "fixed", "p"), [(0, 5, 2 / 32), (0, 10, 2 / 1024), (1, 3, 10 / 16), (4, 4, 1.0)])
def test_the_p_value_is_exact_and_two_sided(broken: int, fixed: int, p: float) -> None:
    first = [True] * broken + [False] * fixed + [True] * 3
    second = [False] * broken + [True] * fixed + [True] * 3
    assert agreement([first, second])[0].mcnemar_p == pytest.approx(p)
    assert agreement([second, first])[0].mcnemar_p == pytest.approx(p)


def test_equal_runs_agree_entirely() -> None:
    predicted = np.array([[0, 1, 2, 1]] * 2)
    (pair,) = agreement([[True, False, True, True]] * 2, predicted)
    assert pair.kappa == pytest.approx(1)
    assert pair.mcnemar_p == 1
    assert pair.fixed.tolist() == pair.broken.tolist() == []


def test_kappa_of_opposite_and_of_constant_predictions() -> None:
    right = [[True, False]] * 2
    assert agreement(right, [[0, 1], [1, 0]])[0].kappa == pytest.approx(-1)
    assert agreement(right, [[0, 0], [0, 1]])[0].kappa == pytest.approx(0)
    assert agreement(right, [[1, 1], [1, 1]])[0].kappa is None


@each("n", [0, 3])
def test_one_run_has_no_pair_and_no_examples_have_no_test(n: int) -> None:
    assert agreement(np.ones((1, n), bool)) == ()
    (pair,) = agreement(np.ones((2, n), bool), np.zeros((2, n), int))
    assert (pair.both, pair.mcnemar_p, pair.kappa) == (n, 1, None)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"correct = shape \[2\]: expected a shape \[R, N\]"):
        agreement([True, False])
    with pytest.raises(ValueError, match=r"predicted = shape \[1, 2\]: expected that of correct, \[2, 2\]"):
        agreement([[True, False]] * 2, [[0, 1]])


class TestMeanStd:
    def test_it_is_the_sample_standard_deviation(self) -> None:
        values = [0.81, 0.79, 0.84, 0.8]
        assert mean_std(values) == pytest.approx((statistics.mean(values), statistics.stdev(values)))

    def test_one_value_has_no_deviation(self) -> None:
        assert mean_std([0.5]) == (0.5, None)

    def test_no_values_are_refused(self) -> None:
        with pytest.raises(ValueError, match="values = none: expected at least one"):
            mean_std([])
