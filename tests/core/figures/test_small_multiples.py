"""Small multiples of representation measures, and curves over the temperature."""

from __future__ import annotations

import json
import math

import plotly.graph_objects as go

from core.catalogue.loss_entry import PushSpread
from core.figures.small_multiples import measures_figure, plane_figure, spread_figure

TAUS = [0.01, 0.1, 1.0]
SPREADS = [
    PushSpread((4.0, 3.0), 0.1, 1.5, 0.9),
    PushSpread((1.5, 1.0), 1.1, 5.0, 0.4),
    PushSpread((2.1, 2.0), 2.0, 9.0, math.nan),
]
LOSSES = ("L_out", "L_in")
NAMES = {"knn1": ("1-NN accuracy", "higher"), "uniformity": ("Uniformity", "lower"), "ari": ("ARI", "higher")}


def test_each_measure_has_a_panel_with_its_own_axes_and_an_arrow_unless_it_cannot_be_computed() -> None:
    values = {"ari": [None, None, None], "knn1": [0.5, None, 0.9], "uniformity": [-1.0, -2.0, -2.5]}
    figure = measures_figure((0, 4, 8), values, NAMES, 4, axis="step", revision="run")
    json.dumps(figure, allow_nan=False)
    assert [trace["y"] for trace in figure["data"]] == [[0.5, None, 0.9], [-1.0, -2.0, -2.5]]
    assert len({trace["yaxis"] for trace in figure["data"]}) == 2
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["1-NN accuracy ↑", "Uniformity ↓"]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [4, 4]


def test_a_path_leads_from_a_circle_to_an_arrow_over_the_frames_that_have_both_measures() -> None:
    both = {0: (1.5, -1.0), 4: (1.0, -1.5), 8: (0.5, -2.0)}
    measured = {step: {"alignment": x, "uniformity": y} for step, (x, y) in both.items()}
    measured[6] = {"alignment": None, "uniformity": -1.0}
    figure = plane_figure({"<b>one</b>": measured, "no measures": {}, "one frame": {0: measured[0]}}, revision="r")
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)
    start, path, single = figure["data"][:3]
    assert list(zip(path["x"], path["y"], strict=True)) == list(both.values())
    assert path["text"] == ["0", "4", "8"]
    assert (start["x"], start["y"], start["marker"]["symbol"]) == ([1.5], [-1.0], "circle-open")
    assert path["marker"]["symbol"] == ["circle", "circle", "arrow"]
    assert path["name"] == "&lt;b&gt;one&lt;/b&gt;"
    assert (single["x"], single["marker"]["symbol"]) == ([1.5], "circle-open")


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
    # The title names two losses.
    three = [spread._replace(losses=(*spread.losses, 9.0)) for spread in SPREADS]
    drawn = spread_figure(TAUS, three, (*LOSSES, "third"), 0.1, 0.3, revision="run")["data"]
    assert [trace["name"] for trace in drawn] == [*lines]
    # The chosen temperature and the run's own are marked in every panel.
    marks = {(shape["xref"], shape["x0"], shape["line"]["dash"]) for shape in figure["layout"]["shapes"]}
    panels = {shape["xref"] for shape in figure["layout"]["shapes"]}
    assert len(panels) == 4
    assert marks == {(panel, *mark) for panel in panels for mark in ((0.1, "solid"), (0.3, "dot"))}
