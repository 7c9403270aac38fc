"""Smoothing of curves by an exponential or a moving average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import ConfigError

Values = NDArray[np.float64]


class Smoothing(NamedTuple):
    """A smoothing method and its amount.

    "exponential" with `amount` β in [0, 1) is s_t = Σ_k β^(t−k) y_k / Σ_k β^(t−k), k ≤ t: a weighted mean of the values
    so far. It starts at the first value, not at 0. "average" with `amount` w ≥ 1 is the centred mean over w values. The
    window shrinks symmetrically near the ends, which avoids a shift; an even w is rounded up to w + 1. Both methods
    count values, not distances on the axis; gaps stay gaps.
    """

    kind: Literal["none", "exponential", "average"] = "none"
    amount: float = 0.0


RAW = Smoothing()


def smoothed(values: Sequence[float | None], smoothing: Smoothing, *, log: bool = False) -> list[float | None]:
    """Smooth values as `Smoothing` defines. None and non-finite values are left out of every mean and stay gaps.

    Args:
        log: for a logarithmic axis, take geometric means, which one large value does not dominate; values of 0 or less
            are gaps.
    Raises: ConfigError for an invalid amount.
    """
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    if log:
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = np.log(numbers)
    numbers[~np.isfinite(numbers)] = np.nan
    match smoothing.kind:
        case "exponential":
            numbers = _exponential(numbers, smoothing.amount)
        case "average":
            numbers = _average(numbers, smoothing.amount)
    return [None if math.isnan(value) else value for value in (np.exp(numbers) if log else numbers).tolist()]


def _exponential(values: Values, beta: float) -> Values:
    import pandas as pd

    if not 0.0 <= beta < 1.0:
        raise ConfigError("smoothing", beta, "give a number of at least 0 and below 1.")
    means = pd.Series(values).ewm(alpha=1.0 - beta, ignore_na=True).mean().to_numpy()
    return np.where(np.isnan(values), np.nan, means)


def _average(values: Values, window: float) -> Values:
    if window < 1:
        raise ConfigError("smoothing", window, "give a window of at least 1 value.")
    out = np.full_like(values, np.nan)
    there = ~np.isnan(values)
    known, count = values[there], int(there.sum())
    place = np.arange(count)
    half = np.minimum(int(window) // 2, np.minimum(place, count - 1 - place))
    # Centre the values before the cumulative sum, so that large ones keep their precision in a long run.
    offset = known.mean() if count else 0.0
    sums = np.concatenate([[0.0], np.cumsum(known - offset)])
    out[there] = (sums[place + half + 1] - sums[place - half]) / (2 * half + 1) + offset
    return out
