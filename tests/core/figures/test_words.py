"""Charts of a text and its words in Plotly's form."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from core.figures.template import Figure
from core.figures.words import (
    ENTERED,
    LABELLED_POINTS,
    LEFT,
    TICKS_MAX,
    attention_against_effect_figure,
    confidence_figure,
    top_words_figure,
    word_heatmap_figure,
)
from core.representation.attention import RankAgreement
from tests.cases import each
from tests.core.figures.test_bars import check

HOSTILE = ['<img src=x onerror="alert(1)">', "<b>\"'&", "w" * 2000, "👩‍👩‍👧", "رائع", "%{x}", "这部电影"]
AGREEMENT = RankAgreement(0.25, -0.5, 4)
NAMES = ("before", "after")


def heatmap(words: list[str], weights: NDArray[np.float64], chosen: NDArray[np.bool_]) -> Figure:
    steps = list(range(len(weights)))
    return word_heatmap_figure(words, weights, steps, column="step", revision="run", chosen=chosen)


def texts_of(figure: Figure) -> str:
    """Return all text that Plotly parses as markup: names, ticks, labels and hover texts."""
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(figure)
    return "\n".join(found)


def named_points(figure: Figure) -> list[str]:
    return [text for trace in figure["data"] for text in trace["text"] if text]


def all_figures(words: list[str]) -> list[Figure]:
    count = len(words)
    rng = np.random.default_rng(count)
    before, after = rng.random((2, count))
    return [
        heatmap(words, rng.random((3, count)), rng.random((3, count)) > 0.5),
        top_words_figure(words, before, after, 2, revision="run", names=NAMES),
        attention_against_effect_figure(words, before, after - 0.5, AGREEMENT, revision="run"),
    ]


@each("count", [0, 1, 2, 40])
def test_they_are_json_and_figures_that_plotly_accepts(count: int) -> None:
    for figure in all_figures([f"word{i}" for i in range(count)]):
        check(figure)
        assert figure["layout"]["uirevision"] == "run"


def test_hostile_words_are_text() -> None:
    for figure in all_figures(HOSTILE):
        check(figure)
        texts = texts_of(figure)
        assert "<img" not in texts
        assert "&lt;img" in texts
        # The app's own markup is bold text or a line.
        assert {part.split(">")[0] for part in texts.split("<")[1:]} <= {"b", "/b", "br", "extra", "/extra"}
        assert "w" * 61 not in texts


class TestHeatmap:
    def test_a_cell_is_the_weight_of_its_word_at_its_step(self) -> None:
        weights = np.random.default_rng(0).random((3, 4))
        (trace,) = heatmap(list("abcd"), weights, weights > 0.5)["data"]
        for step in range(3):
            for word in range(4):
                assert trace["z"][word][step] == pytest.approx(weights[step, word], rel=1e-4)
        assert (trace["zmin"], trace["zmax"]) == (0, weights.max())

    def test_many_steps_have_few_names_the_first_and_the_last_among_them(self) -> None:
        steps = [step**2 for step in range(200)]
        none = np.zeros((200, 1), bool)
        figure = word_heatmap_figure(["a"], np.ones((200, 1)), steps, column="step", revision="r", chosen=none)
        axis = figure["layout"]["xaxis"]
        assert len(axis["tickvals"]) <= TICKS_MAX
        assert axis["ticktext"] == [str(steps[i]) for i in axis["tickvals"]]
        assert (axis["ticktext"][0], axis["ticktext"][-1]) == ("0", str(199**2))


class TestTopWords:
    def test_words_of_either_top_stand_in_the_order_of_the_new_those_that_left_last(self) -> None:
        words, before, after = ("good", "bad", "ugly", "film"), [0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.8]
        names = ("step 0", "<i>")
        figure = top_words_figure(words, np.array(before), np.array(after), 2, revision="r", names=names)
        assert figure["layout"]["yaxis"]["ticktext"] == [f"{ENTERED} film", "bad", f"{LEFT} good"]
        before, after = figure["data"]
        assert (before["x"], after["x"]) == ([0.1, 0.3, 0.4], [0.8, 0.3, 0.1])
        # A bar says its value, and what became of its word.
        assert before["hovertext"][2] == "<b>good</b><br>step 0: attention 0.4000, left the top k"
        assert after["hovertext"][0] == "<b>film</b><br>&lt;i&gt;: attention 0.8000, entered the top k"
        assert after["hovertext"][1].endswith("stayed in the top k")
        assert before["marker"]["pattern"]["shape"]  # a cue besides colour
        assert "pattern" not in after["marker"]


class TestAttentionAgainstEffect:
    def test_a_point_is_a_word_and_its_sign_has_a_symbol(self) -> None:
        figure = attention_against_effect_figure(
            ["a", "b", "c", "d"],
            np.array([0.1, 0.2, 0.3, 0.4]),
            np.array([0.5, -0.25, math.nan, 0.0]),
            AGREEMENT,
            revision="r",
        )
        less, more = figure["data"]
        assert (less["x"], less["y"], less["customdata"]) == ([0.1, 0.4], [0.5, 0.0], [0, 3])
        assert (more["x"], more["y"], more["customdata"]) == ([0.2], [-0.25], [1])
        assert less["marker"]["symbol"] != more["marker"]["symbol"]
        assert less["marker"]["color"] != more["marker"]["color"]
        assert more["hovertext"] == ["<b>b</b><br>attention 0.2000<br>drop without it −0.2500"]

    def test_the_strongest_have_names_and_no_more_than_a_few(self) -> None:
        """Points lie far apart, so only the maximum number limits the names."""
        places = np.arange(12) / 11
        words = [f"w{i}" for i in range(12)]
        named = named_points(attention_against_effect_figure(words, places, places, AGREEMENT, revision="r"))
        assert set(named) == {f"w{i}" for i in range(12 - LABELLED_POINTS, 12)}

    @each("seed", range(4))
    @each("width_px", [270, 520])
    def test_no_name_lies_over_another_or_over_a_point(self, seed: int, width_px: int) -> None:
        rng = np.random.default_rng(seed)
        count = 60
        attention, effects = rng.dirichlet(np.full(count, 0.3)), rng.normal(size=count) * 0.05
        effects[:5] += 0.4  # the strongest lie close together
        words = ["an" * int(rng.integers(1, 9)) + str(i) for i in range(count)]
        figure = attention_against_effect_figure(words, attention, effects, AGREEMENT, revision="r")
        x = (attention - attention.min()) / np.ptp(attention) * width_px
        y = (effects - effects.min()) / np.ptp(effects) * 290
        named = [words.index(text) for text in named_points(figure)]
        assert named
        # Letters of a 12 px font are about 6 px wide. The text of a name begins above its marker of 9 px.
        boxes = {i: (x[i] - 3 * len(words[i]), x[i] + 3 * len(words[i]), y[i] + 5, y[i] + 18) for i in named}
        for i, (left, right, low, high) in boxes.items():
            for j in range(count):
                assert not (left < x[j] < right and low < y[j] < high), f"{words[i]} lies over the point of {words[j]}"
            for j, (other_left, other_right, other_low, other_high) in boxes.items():
                over = left < other_right and other_left < right and low < other_high and other_low < high
                assert i == j or not over, f"{words[i]} lies over {words[j]}"

    def test_points_in_one_place_have_one_name_at_most(self) -> None:
        alike = np.ones(5)
        figure = attention_against_effect_figure(list("abcde"), alike, alike, AGREEMENT, revision="r")
        assert named_points(figure) == ["a"]


def test_each_class_has_a_line_over_the_steps_and_estimates_are_drawn_open() -> None:
    shares = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    figure = confidence_figure((0, 5, 9), shares, (HOSTILE[0], "good"), (True, False, True), 5, revision="run")
    assert [trace["y"] for trace in figure["data"]] == [[0.9, 0.4, 0.2], [0.1, 0.6, 0.8]]
    assert all(trace["x"] == [0, 5, 9] for trace in figure["data"])
    assert figure["layout"]["shapes"][0]["x0"] == 5
    for trace in figure["data"]:
        assert [symbol.endswith("-open") for symbol in trace["marker"]["symbol"]] == [False, True, False]
    assert "<img" not in json.dumps(figure)
