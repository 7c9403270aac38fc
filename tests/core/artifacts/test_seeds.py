"""Mean ± standard deviation over seeds, with the best marked."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from core.artifacts.seeds import SCORES, Measure, Spread, best, scores_over_seeds, seed_groups
from core.config import RunConfig, parse_config
from tests.cases import each

ACCURACY, LOSS = SCORES["accuracy"], SCORES["cross_entropy"]
RNG = np.random.default_rng(0)


def run(seed: int, batch_size: int = 16) -> RunConfig:
    return parse_config({"seed": seed, "phases": [{"batch_size": batch_size}]})


def accuracy(rows: Any, group: int) -> Spread | None:
    return rows[group].scores["accuracy"]


def test_groups_in_the_order_in_which_they_come() -> None:
    configs = [run(0), run(0, 8), run(1), run(3, 8), run(0, 4), run(2)]
    assert seed_groups(configs) == ((0, 2, 5), (1, 3), (4,))
    assert seed_groups([]) == ()
    # A run whose knob was turned is no repetition of one whose knobs were not.
    turns = [{"step": 4, "name": "temperature", "value": 0.1}]
    plain = [run(0), run(1)]
    turned = [parse_config(one.model_dump() | {"knob_turns": turns}) for one in plain]
    assert seed_groups([plain[0], turned[0], plain[1], turned[1]]) == ((0, 2), (1, 3))


def test_mean_and_sample_deviation_of_each_group() -> None:
    configs = [run(seed, size) for seed in range(4) for size in (8, 16)]
    values = RNG.uniform(0.5, 1, len(configs)).tolist()
    rows = scores_over_seeds(configs, [{"accuracy": value} for value in values], [ACCURACY])
    assert [row.runs for row in rows] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    for row in rows:
        of_row = [values[i] for i in row.runs]
        found = row.scores["accuracy"]
        assert (found.mean, found.std, found.seeds) == (pytest.approx(mean(of_row)), pytest.approx(stdev(of_row)), 4)


def test_one_seed_has_no_deviation_and_the_same_seed_twice_is_one_draw() -> None:
    (row,) = scores_over_seeds([run(0)], [{"accuracy": 0.8}], [ACCURACY])
    assert row.scores["accuracy"] == Spread(0.8, None, 1, best=False)
    configs = [run(0), run(0), run(1)]
    (row,) = scores_over_seeds(configs, [{"accuracy": a} for a in (0.5, 0.7, 0.8)], [ACCURACY])
    found = row.scores["accuracy"]
    assert (found.mean, found.std, found.seeds) == (pytest.approx(0.7), pytest.approx(stdev([0.6, 0.8])), 2)


@each("absent", [None, math.nan, math.inf])
def test_a_score_that_is_not_there_is_left_out_and_counted(absent: float | None) -> None:
    configs = [run(0), run(1), run(2)]
    scores: list[dict[str, float | None]] = [{"accuracy": 0.5}, {"accuracy": absent}, {"accuracy": 0.7}]
    found = accuracy(scores_over_seeds(configs, scores, [ACCURACY]), 0)
    assert (found.mean, found.seeds) == (pytest.approx(0.6), 2)
    assert accuracy(scores_over_seeds(configs, [{}, {}, {}], [ACCURACY]), 0) is None


class TestBest:
    @each(
        ("values", "better", "marks"),
        [
            ([0.7, 0.9, 0.8], "higher", [False, True, False]),
            ([0.7, 0.9, 0.8], "lower", [True, False, False]),
            ([0.9, 0.7, 0.9], "higher", [True, False, True]),
            ([0.1 + 0.2, 0.3], "higher", [True, True]),
            ([None, 0.9, 0.8], "higher", [False, True, False]),
            ([0.9, 0.9 + 1e-6], "higher", [False, True]),
            ([0.0, 0.0], "lower", [True, True]),
            ([None, 0.9], "higher", [False, False]),
            ([0.9], "higher", [False]),
            ([0.7, 0.9], None, [False, False]),
            ([], "higher", []),
        ],
    )
    def test_marks(self, values: list[float | None], better: Any, marks: list[bool]) -> None:
        assert list(best(values, better)) == marks

    def test_the_mean_decides_and_each_measure_has_its_way_unless_seeds_differ(self) -> None:
        configs = [run(0), run(1), run(0, 8), run(1, 8)]
        scores = [{"accuracy": a, "cross_entropy": c} for a, c in ((0.9, 0.4), (0.7, 0.4), (0.75, 0.5), (0.75, 0.5))]
        for last, marks in ((0.75, [[True, True], [False, False]]), (math.nan, [[False, True], [False, False]])):
            scores[3]["accuracy"] = last
            rows = scores_over_seeds(configs, scores, [ACCURACY, LOSS])
            assert [[spread.best for spread in row.scores.values() if spread] for row in rows] == marks

    @each(
        ("configs", "marked"),
        [([run(0), run(0, 8)], False), ([run(0), run(1)], True), ([run(0), run(1, 8)], True)],
    )
    def test_a_measure_that_may_not_be_marked_one_group_and_other_seeds_have_no_best(
        self, configs: list[RunConfig], marked: bool
    ) -> None:
        measure = Measure("accuracy", "Test accuracy", "higher", marked=marked)
        rows = scores_over_seeds(configs, [{"accuracy": 0.9}, {"accuracy": 0.8}], [measure])
        assert not any(spread.best for row in rows for spread in row.scores.values() if spread)
