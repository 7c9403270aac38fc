"""Significance of the difference between two training methods over the same seeds and the same examples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE, LEVEL, POWER = 0.95, 0.05, 0.8
RESAMPLES = 9_999
# A fixed seed makes every result reproducible to the last digit.
RESAMPLING_SEED = 0
# Largest number of seeds that is worth recommending.
MOST_SEEDS = 1_000
# Smaller differences count as zero: scores are means of many values, which may be summed in different orders.
NOTHING = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Difference between two scores, paired by seed.

    Attributes:
        differences: one per seed.
        examples: number of examples, the same for every seed; 0 if only the scores are known.
        mean: over seeds, in the score's unit.
        std: sample standard deviation over seeds, n − 1; None for one seed.
        low, high: 95 % bootstrap interval of the mean; None for one seed.
        p: two-sided, of the paired permutation test over seeds; None for one seed.
    """

    differences: tuple[float, ...]
    examples: int
    mean: float
    std: float | None
    low: float | None
    high: float | None
    p: float | None

    @property
    def seeds(self) -> int:
        return len(self.differences)

    @property
    def least_p(self) -> float:
        """The smallest p that this number of seeds can give, whatever the scores."""
        return min(1.0, 2.0 ** (1 - self.seeds))


def paired_difference(ours: ArrayLike, theirs: ArrayLike) -> PairedDifference:
    """Compare scores that are paired by seed and, if known, by example.

    The interval is the percentile bootstrap of the mean. With examples, seeds and examples are resampled independently
    (Owen 2007, "The pigeonhole bootstrap", doi:10.1214/07-AOAS122), so that the interval covers other seeds as well as
    other texts. The test swaps the two methods within seeds, over all 2^n combinations if these are few. If the methods
    were equal, all combinations would be equally likely. With n seeds, p cannot be below 2^(1 − n).

    Args:
        ours, theirs: [S] scores, or [S, E] scores of examples whose mean is the score; one row per seed, in the same
            order.
    Raises: ValueError for shapes that differ, no seed, or a number that is not finite.
    """
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise ValueError(f"scores have shapes {a.shape} and {b.shape}: give both as [S] or both as [S, E].")
    if not a.size:
        raise ValueError("there is no score: give those of at least one seed.")
    by_example = a - b
    if not np.isfinite(by_example).all():
        raise ValueError("a score is not finite: leave its seed out.")
    differences = by_example if by_example.ndim == 1 else by_example.mean(axis=1)
    examples = 0 if by_example.ndim == 1 else by_example.shape[1]
    mean, listed = float(differences.mean()), tuple(map(float, differences))
    if len(differences) < 2:
        return PairedDifference(listed, examples, mean, None, None, None, None)
    low, high = _interval(by_example.tobytes(), by_example.shape)
    std = float(differences.std(ddof=1))
    return PairedDifference(listed, examples, mean, std, low, high, _permutation_p(differences))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Correct p values for multiple comparisons, so that the family-wise error rate stays at the level.

    Source: Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    # statsmodels runs a full garbage collection at each call, which takes a tenth of a second.
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given)
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)), 1.0)
    return tuple(map(float, corrected))


def seeds_needed(found: PairedDifference, level: float = LEVEL) -> int | None:
    """Estimate the number of seeds that would detect a difference of this size with a power of 0.8.

    The estimate uses the paired t test, whose power matches that of the permutation test except with very few seeds.
    It is never below `fewest_seeds(level)`.

    Args:
        level: the p to reach; with several comparisons, the level divided by their number.
    Returns: None if MOST_SEEDS would not suffice, for a mean of zero, and for a single seed.
    """
    from statsmodels.stats.power import TTestPower

    if found.std is None or abs(found.mean) <= NOTHING:
        return None
    fewest = fewest_seeds(level)
    if found.std <= NOTHING:
        return fewest
    effect = abs(found.mean) / found.std
    power = TTestPower()
    if power.power(effect, MOST_SEEDS, level) < POWER:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings concern effects that two seeds can show; the result is right
        enough = power.power(effect, fewest, level) >= POWER
        needed = fewest if enough else math.ceil(float(np.squeeze(power.solve_power(effect, None, level, POWER))))
    return max(fewest, needed)


def fewest_seeds(level: float = LEVEL) -> int:
    """Return the number of seeds from which the permutation test can give p ≤ `level`."""
    return max(2, math.ceil(1 - math.log2(level)))


# Page reruns and lessons request the same intervals again; each takes a tenth of a second.
@lru_cache(maxsize=256)
def _interval(values: bytes, shape: tuple[int, ...]) -> tuple[float, float]:
    """Bootstrap the interval of the mean of differences [S] or [S, E]."""
    from scipy.stats import bootstrap

    by_example = np.frombuffer(values, np.float64).reshape(shape)
    if np.ptp(by_example) <= NOTHING:
        return float(by_example.flat[0]), float(by_example.flat[0])
    chosen = {"confidence_level": CONFIDENCE, "n_resamples": RESAMPLES, "method": "percentile", "batch": 1_000}
    rng = np.random.default_rng(RESAMPLING_SEED)
    if by_example.ndim == 1:
        found = bootstrap((by_example,), np.mean, rng=rng, **chosen)
    else:
        seeds, examples = (np.arange(count) for count in by_example.shape)

        def mean_of(rows: NDArray[np.int64], columns: NDArray[np.int64], axis: int = -1) -> Floats:
            # The mean depends only on how often each seed and each example was drawn.
            drawn = _counts(rows, len(seeds)) @ by_example  # [B, E]
            return np.asarray((drawn * _counts(columns, len(examples))).sum(axis=-1) / by_example.size)

        found = bootstrap((seeds, examples), mean_of, paired=False, vectorized=True, rng=rng, **chosen)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _counts(drawn: NDArray[np.int64], size: int) -> Floats:
    """Count how often each of `size` numbers was drawn: [..., n] → [..., size]."""
    flat = np.atleast_2d(drawn)
    places = flat + size * np.arange(len(flat))[:, None]
    counts = np.bincount(places.ravel(), minlength=size * len(flat)).reshape(len(flat), size)
    return counts.astype(np.float64).reshape(*drawn.shape[:-1], size)


def _permutation_p(differences: Floats) -> float:
    from scipy.stats import permutation_test

    if np.max(np.abs(differences)) <= NOTHING:
        return 1.0
    found = permutation_test(
        (differences, np.zeros_like(differences)),
        lambda ours, theirs, axis: np.mean(ours - theirs, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(RESAMPLING_SEED),
    )
    return float(found.pvalue)
