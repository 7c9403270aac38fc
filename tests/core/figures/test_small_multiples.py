"""Small multiples of representation measures, and curves over the temperature."""

from __future__ import annotations

import json
import math

from core.catalogue.loss_entry import PushSpread
from core.figures.small_multiples import measures_figure, spread_figure

TAUS = [0.01, 0.1, 1.0]
SPREADS = [
    PushSpread((4.0, 3.0), 0.1, 1.5, 0.9),
    PushSpread((1.5, 1.0), 1.1, 5.0, 0.4),
    PushSpread((2.1, 2.0), 2.0, 9.0, math.nan),
]
LOSSES = ("L_out", "L_in")
NAMES = {"knn1": ("1-NN accuracy", "higher"), "uniformity": ("Uniformity", "lower"), "ari": ("ARI", "higher")}


def drawn(values: dict[str, list[float | None]]) -> dict:
    return measures_figure((0, 4, 8), values, NAMES, 4, axis="step", revision="run")


def test_each_measure_has_a_panel_with_its_own_axes_and_an_arrow() -> None:
    figure = drawn({"knn1": [0.5, 0.7, 0.9], "uniformity": [-1.0, -2.0, -2.5]})
    assert [trace["y"] for trace in figure["data"]] == [[0.5, 0.7, 0.9], [-1.0, -2.0, -2.5]]
    assert len({trace["yaxis"] for trace in figure["data"]}) == 2
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["1-NN accuracy ↑", "Uniformity ↓"]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [4, 4]


def test_a_measure_that_cannot_be_computed_is_left_out_and_a_gap_stays_a_gap() -> None:
    figure = drawn({"knn1": [None, None, None], "ari": [0.1, None, 0.3]})
    assert [trace["name"] for trace in figure["data"]] == ["ARI"]
    assert figure["data"][0]["y"] == [0.1, None, 0.3]
    json.dumps(figure, allow_nan=False)


def test_every_measure_is_drawn_over_tau_once() -> None:
    figure = spread_figure(TAUS, SPREADS, LOSSES, 0.1, 0.3, revision="run")
    lines = {trace["name"]: trace for trace in figure["data"]}
    assert lines["L_out"]["y"] == [4.0, 1.5, 2.1]
    assert lines["L_in"]["y"] == [3.0, 1.0, 2.0]
    assert lines["entropy"]["y"] == [0.1, 1.1, 2.0]
    assert lines["effective negatives"]["y"] == [1.5, 5.0, 9.0]
    assert lines["share"]["y"] == [0.9, 0.4, None]
    assert all(trace["x"] == TAUS for trace in lines.values())
    assert lines["L_out"]["yaxis"] == lines["L_in"]["yaxis"] != lines["entropy"]["yaxis"]
    json.dumps(figure, allow_nan=False)


def test_the_chosen_and_the_own_temperature_are_marked_in_every_panel() -> None:
    shapes = spread_figure(TAUS, SPREADS, LOSSES, 0.1, 0.3, revision="run")["layout"]["shapes"]
    solid = [shape for shape in shapes if shape["line"]["dash"] == "solid"]
    dotted = [shape for shape in shapes if shape["line"]["dash"] == "dot"]
    assert [shape["x0"] for shape in solid] == [0.1] * 4
    assert [shape["x0"] for shape in dotted] == [0.3] * 4
    assert len({shape["xref"] for shape in solid}) == 4
