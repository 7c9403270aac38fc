"""Smoothing, against its definition, value by value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.errors import ConfigError
from core.figures.smoothing import RAW, Smoothing, smoothed
from tests.cases import each

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=60).tolist()


def slow_exponential(values: list[float], beta: float) -> list[float]:
    out = []
    for t in range(len(values)):
        top = bottom = 0.0
        for k in range(t + 1):
            top += beta ** (t - k) * values[k]
            bottom += beta ** (t - k)
        out.append(top / bottom)
    return out


def slow_average(values: list[float], window: int) -> list[float]:
    out = []
    for i in range(len(values)):
        half = min(window // 2, i, len(values) - 1 - i)
        around = [values[j] for j in range(len(values)) if abs(i - j) <= half]
        out.append(sum(around) / len(around))
    return out


@each("beta", [0.0, 0.5, 0.9999])
def test_exponential(beta: float) -> None:
    assert smoothed(NOISE, Smoothing("exponential", beta)) == pytest.approx(slow_exponential(NOISE, beta))


@each("window", [1, 2, 3, 9, 60, 61, 1000])
def test_average(window: int) -> None:
    assert smoothed(NOISE, Smoothing("average", window)) == pytest.approx(slow_average(NOISE, window))
    assert smoothed(NOISE, RAW) == NOISE


def test_geometric_means_on_a_log_axis() -> None:
    values = [40.0, *np.exp(NOISE).tolist()]  # a spike that would hold up an arithmetic mean for fifty steps
    known = [*values[:9], 0.0, *values[9:]]
    found = smoothed(known, Smoothing("exponential", 0.9), log=True)
    assert found[9] is None
    slow = [math.exp(one) for one in slow_exponential([math.log(value) for value in values], 0.9)]
    assert [value for value in found if value is not None] == pytest.approx(slow)


@each("how", [Smoothing("exponential", 0.95), Smoothing("average", 11)])
class TestBoth:
    @each("gap", [None, math.nan, math.inf, -math.inf])
    def test_gaps_stay_gaps_and_touch_nothing_else(self, how: Smoothing, gap: float | None) -> None:
        places = [0, 7, 8, 30, 59]
        holed: list[float | None] = [gap if i in places else value for i, value in enumerate(NOISE)]
        found = smoothed(holed, how)
        assert [i for i, value in enumerate(found) if value is None] == places
        whole = smoothed([value for i, value in enumerate(NOISE) if i not in places], how)
        assert [value for value in found if value is not None] == pytest.approx(whole)

    @each("values", [[], [None], [None, None]])
    def test_nothing_to_smooth(self, how: Smoothing, values: list[None]) -> None:
        assert smoothed(values, how) == values

    def test_large_values_lose_no_digits(self, how: Smoothing) -> None:
        far = smoothed([value + 1e6 for value in NOISE], how)
        near = smoothed(NOISE, how)
        assert [value - 1e6 for value in far if value is not None] == pytest.approx(near, abs=1e-8)


@each(
    "how",
    [
        Smoothing("exponential", 1.0),
        Smoothing("exponential", -0.1),
        Smoothing("exponential", math.nan),
        Smoothing("average", 0),
        Smoothing("average", 0.5),
    ],
)
def test_an_amount_that_is_none_is_refused(how: Smoothing) -> None:
    with pytest.raises(ConfigError, match="smoothing = "):
        smoothed(NOISE, how)
