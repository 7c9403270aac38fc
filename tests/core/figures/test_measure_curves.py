"""Small multiples of representation measures."""

from __future__ import annotations

import json

from core.figures.measure_curves import measures_figure

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


def test_shares_are_percentages_on_axis_and_hover() -> None:
    values = {"knn1": [0.5, 0.7, 0.9], "ari": [0.1, 0.2, 0.3]}
    figure = measures_figure((0, 4, 8), values, NAMES, 4, axis="step", revision="run", shares=("knn1",))
    assert figure["layout"]["yaxis"]["tickformat"] == ".1~%"
    assert "tickformat" not in figure["layout"]["yaxis2"]
    assert ["%{y:.1%}" in trace["hovertemplate"] for trace in figure["data"]] == [True, False]


def test_nothing_to_draw_is_an_empty_figure() -> None:
    assert drawn({"knn1": [None, None, None]})["data"] == []
