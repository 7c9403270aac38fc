"""Paired differences: the permutation p by hand, the interval by a bootstrap of plain loops, Holm step by step."""

from __future__ import annotations

import itertools
import statistics

import numpy as np
import pytest
from scipy.stats import ttest_rel

from core.representation.paired import (
    LEVEL,
    POWER,
    PairedDifference,
    holm,
    paired_difference,
    seeds_needed,
)
from tests.cases import each


def p_by_hand(differences: list[float]) -> float:
    """Compute the two-sided p over all sign flips."""
    seen = abs(sum(differences))
    flips = list(itertools.product((1, -1), repeat=len(differences)))
    sums = [abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in flips]
    return sum(total >= seen - 1e-12 for total in sums) / len(flips)


@each(
    "differences",
    [[0.1, 0.2, 0.15, 0.05, 0.3], [0.1, -0.2, 0.15], [0.4, 0.4], [-0.1, -0.2, -0.3, -0.25, 0.01, -0.6, -0.02]],
)
def test_p_counts_the_sign_flips_that_are_as_extreme(differences: list[float]) -> None:
    found = paired_difference(differences, [0.0] * len(differences))
    assert found.p == pytest.approx(p_by_hand(differences))
    assert found.p >= found.least_p == 2.0 ** (1 - len(differences))


def test_mean_and_deviation_are_those_of_the_differences() -> None:
    found = paired_difference([0.9, 0.8, 0.85], [0.7, 0.75, 0.9])
    differences = [0.2, 0.05, -0.05]
    assert (found.mean, found.std) == pytest.approx((statistics.mean(differences), statistics.stdev(differences)))
    assert (found.seeds, found.examples) == (3, 0)


def test_examples_give_the_same_differences_as_their_means() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.random((4, 30)), rng.random((4, 30))
    by_example, by_seed = paired_difference(ours, theirs), paired_difference(ours.mean(1), theirs.mean(1))
    assert by_example.differences == pytest.approx(by_seed.differences)
    assert by_example.p == by_seed.p
    assert by_example.examples == 30


def test_the_interval_draws_seeds_and_examples() -> None:
    """Compare with a separate bootstrap, with different random draws."""
    rng = np.random.default_rng(1)
    ours = (rng.random((5, 40)) < 0.8).astype(float)
    theirs = (rng.random((5, 40)) < 0.7).astype(float)
    means = []
    for _ in range(4_000):
        seeds, examples = rng.integers(0, 5, 5), rng.integers(0, 40, 40)
        means.append((ours - theirs)[np.ix_(seeds, examples)].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    found = paired_difference(ours, theirs)
    assert found.low == pytest.approx(low, abs=0.012)
    assert found.high == pytest.approx(high, abs=0.012)


def test_examples_that_vary_widen_the_interval() -> None:
    """All seeds are equal, so only the examples add uncertainty."""
    row = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0] * 4)
    ours, theirs = np.tile(row, (3, 1)), np.zeros((3, 32))
    found = paired_difference(ours, theirs)
    assert found.low < found.mean < (found.high or 0)
    of_seeds = paired_difference(ours.mean(1), theirs.mean(1))
    assert (of_seeds.low, of_seeds.high) == (0.5, 0.5)


def test_the_same_scores_are_no_difference() -> None:
    found = paired_difference(np.ones((4, 6)), np.ones((4, 6)))
    assert (found.mean, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert seeds_needed(found) is None


def test_one_seed_gives_no_interval_and_no_p_value() -> None:
    found = paired_difference([0.9], [0.8])
    assert (found.std, found.low, found.high, found.p) == (None, None, None, None)
    assert (found.least_p, seeds_needed(found)) == (1.0, None)


@each(
    ("ours", "theirs", "words"),
    [
        ([0.1, 0.2], [0.1], "shapes"),
        ([[[0.1]]], [[[0.1]]], "shapes"),
        ([], [], "no score"),
        ([0.1, float("nan")], [0.1, 0.2], "not finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(ours: list[float], theirs: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        paired_difference(ours, theirs)


def test_holm_multiplies_the_smallest_by_all_and_never_falls() -> None:
    p_values = [0.04, 0.01, 0.03, 0.5]
    assert holm(p_values) == pytest.approx((0.09, 0.04, 0.09, 0.5))
    assert holm([0.4, 0.6]) == pytest.approx((0.8, 0.8))
    assert holm([]) == ()


def a_difference(mean: float, std: float) -> PairedDifference:
    return PairedDifference((mean - std, mean + std), 0, mean, std, None, None, None)


@pytest.mark.slow
@each("effect", [0.4, 0.8, 1.5])
def test_that_many_seeds_show_the_difference_four_times_in_five(effect: float) -> None:
    needed = seeds_needed(a_difference(effect, 1.0))
    rng = np.random.default_rng(0)
    draws = rng.normal(effect, 1.0, (2_000, needed))
    shown = np.mean([ttest_rel(draw, np.zeros(needed)).pvalue <= LEVEL for draw in draws])
    assert shown == pytest.approx(POWER, abs=0.05) if needed > 7 else shown >= POWER - 0.05


def test_no_number_of_seeds_is_fewer_than_the_test_needs() -> None:
    assert seeds_needed(a_difference(1.0, 0.0)) == 6  # 2^(1 − 6) is the first below 0.05
    assert seeds_needed(a_difference(100.0, 0.1), LEVEL / 9) == 9
    assert seeds_needed(a_difference(0.001, 1.0)) is None
