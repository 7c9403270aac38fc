"""Bars in Plotly's form."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import plotly.graph_objects as go
import pytest

from core.figures.bars import class_balance_figure, histogram_figure, score_figure
from core.figures.template import Figure
from tests.cases import each

HOSTILE = '<img src=x onerror="alert(1)">'


def made_lengths(count: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [min(400, 3 + int(rng.lognormvariate(3, 0.6))) for _ in range(count)]


def bars_of(figure: Figure) -> list[tuple[float, float, int, str]]:
    """Return the ends, count and hover text of each bar."""
    (trace,) = figure["data"]
    return [
        (x - width / 2, x + width / 2, count, hover)
        for x, width, count, hover in zip(trace["x"], trace["width"], trace["y"], trace["hovertext"], strict=True)
    ]


def check(figure: Figure) -> None:
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    go.Figure(figure)


class TestClassBalance:
    @each("classes", [0, 1, 2, 100])
    @each("splits", [0, 1, 3])
    def test_it_is_json_and_a_figure_that_plotly_accepts(self, classes: int, splits: int) -> None:
        counts = {f"split {s}": [s + i for i in range(classes)] for s in range(splits)}
        check(class_balance_figure([f"class {i}" for i in range(classes)], counts))

    def test_each_class_has_its_bar_in_the_order_given_and_its_total_at_the_end(self) -> None:
        figure = class_balance_figure(["b", "a", "c"], {"train": [5, 0, 1200], "test": [1, 2, 34]})
        train, test, totals = figure["data"]
        assert (train["x"], test["x"]) == ([5, 0, 1200], [1, 2, 34])
        assert train["y"] == test["y"] == totals["y"] == figure["layout"]["yaxis"]["tickvals"] == [0, 1, 2]
        assert figure["layout"]["yaxis"]["ticktext"] == ["b", "a", "c"]
        low, high = figure["layout"]["yaxis"]["range"]
        assert low > high  # the first class is at the top
        assert totals["x"] == [6, 2, 1234]
        assert [text.strip() for text in totals["text"]] == ["6", "2", "1,234"]
        assert figure["layout"]["barmode"] == "stack"
        assert figure["layout"]["xaxis"]["range"] == [0, 1234]

    def test_names_are_escaped_and_never_read_as_templates(self) -> None:
        figure = class_balance_figure([HOSTILE, "%{x}"], {HOSTILE: [1, 2]})
        assert "<img" not in json.dumps(figure)
        assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;" in figure["data"][0]["hovertext"][0]
        assert figure["data"][0]["hovertemplate"] == "%{hovertext}<extra></extra>"


class TestHistogram:
    @each(
        "lengths", [[], [0], [7], [7] * 50, [0, 1], [5, 2000], [3, 3, 3, 900_000], [*range(10_000)], [10_000, 10_007]]
    )
    def test_it_is_json_and_a_figure_that_plotly_accepts(self, lengths: list[int]) -> None:
        figure = histogram_figure(lengths, HOSTILE)
        check(figure)
        assert "<img" not in json.dumps(figure)
        low, high = figure["layout"]["xaxis"]["range"]
        assert low < high
        if lengths:
            bars = bars_of(figure)
            assert sum(count for _, _, count, _ in bars) == len(lengths)
            assert all(low <= left < right <= high for left, right, _, _ in bars)
            assert all(one[1] < other[0] for one, other in pairwise(bars))

    @each("seed", range(2))
    @each("count", [10, 5_000])
    def test_every_bar_counts_the_lengths_it_names(self, count: int, seed: int) -> None:
        lengths = [*made_lengths(count, seed), 3_000]
        for left, right, counted, hover in bars_of(histogram_figure(lengths, "words")):
            named = hover.partition(" words<br>")[0].replace(",", "")
            separator = " to " if " to " in named else "–"
            first, _, last = named.partition(separator)
            assert separator == " to " or left < int(first) <= int(last or first) < right
            expected = sum(int(first) <= length <= int(last or first) for length in lengths)
            assert counted == expected
            assert f"{expected:,} of {len(lengths):,} texts, {expected / len(lengths):.1%}" in hover

    def test_one_long_text_shares_the_last_bar_and_the_others_keep_their_room(self) -> None:
        lengths = made_lengths(1_000)
        alone = bars_of(histogram_figure([length for length in lengths if length <= 80], "words"))
        figure = histogram_figure([*lengths, 19_000], "words")
        bars = bars_of(figure)
        assert bars[-1][1] < 2 * alone[-1][1]
        names, places = figure["layout"]["xaxis"]["ticktext"], figure["layout"]["xaxis"]["tickvals"]
        start = int(names[-1].removeprefix("≥ "))
        assert bars[-1][2] == sum(length >= start for length in [*lengths, 19_000])
        assert bars[-1][0] < places[-1] < bars[-1][1]
        assert bars[-1][3].startswith(f"{start} to 19,000 words")
        assert [int(name) for name in names[:-1]] == places[:-1]
        assert 3 <= len(names) <= 9
        assert len(set(figure["data"][0]["marker"]["color"])) == 2

    @each("longest", [1, 39, 40, 41, 399, 4_000, 123_456])
    def test_bars_are_neither_too_many_nor_of_odd_widths(self, longest: int) -> None:
        figure = histogram_figure([*range(0, longest + 1, max(1, longest // 500))], "words")
        assert len(figure["data"][0]["x"]) <= 42
        widths = {round(b - a, 6) for a, b in pairwise(figure["data"][0]["x"])}
        assert len(widths) == 1
        assert str(int(widths.pop())).rstrip("0") in ("1", "2", "5")


class TestScores:
    def test_every_pair_is_in_a_bar_of_its_score(self) -> None:
        scores = [0.0, 0.2, 0.25, 1.0, 4.99, 5.0, 5.0]
        figure = score_figure(scores)
        go.Figure(figure)
        (bars,) = figure["data"]
        width = 5.0 / len(bars["x"])
        low = [i * width for i in range(len(bars["x"]))]
        high = [*low[1:], 5.0]
        assert bars["x"] == pytest.approx([edge + width / 2 for edge in low], abs=1e-6)
        expected = [sum(a <= s < b or (s == b == 5.0) for s in scores) for a, b in zip(low, high, strict=True)]
        assert bars["y"] == expected
        assert sum(bars["y"]) == len(scores)

    @each("scores", [[], [3.0], [0.1] * 5, [1e308, -1e308], [0.0, 1.0]])
    def test_odd_scores_make_a_figure_too(self, scores: list[float]) -> None:
        figure = score_figure(scores)
        go.Figure(figure)
        assert sum(figure["data"][0]["y"]) == len(scores)
