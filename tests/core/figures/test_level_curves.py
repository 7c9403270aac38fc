"""Curves over the levels of a setting."""

from __future__ import annotations

import json

from core.figures.level_curves import LevelPanel, level_curves

PANELS = (
    LevelPanel(
        "Validation accuracy",
        [[0.7, 0.9], [0.8, None]],
        [[0.1, None], [None, None]],
        {"probe": 0.75, "<CE>": 0.8},
        True,
    ),
    LevelPanel("Silhouette", [[0.1, 0.2], [0.3, 0.4]], [[None, None], [None, None]], {}, is_share=False),
)


def test_levels_are_in_order_on_one_axis_with_a_line_for_each_other_level() -> None:
    figure = level_curves(PANELS, [0.3, 0.05], ["λ 0.1", "λ 0.9"], "Temperature τ", log=True)
    assert [trace["x"] for trace in figure["data"]] == [[0.05, 0.3]] * 4
    assert [trace["y"] for trace in figure["data"]] == [[0.9, 0.7], [None, 0.8], [0.2, 0.1], [0.4, 0.3]]
    assert [trace["showlegend"] for trace in figure["data"]] == [True, True, False, False]
    axis = figure["layout"]["xaxis"]
    assert (axis["type"], axis["tickvals"], axis["ticktext"]) == ("log", [0.05, 0.3], ["0.05", "0.3"])
    assert axis["anchor"] == "y2"
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["Validation accuracy", "Silhouette"]
    json.dumps(figure, allow_nan=False)


def test_spreads_are_bars_and_references_are_named_lines_of_their_panel() -> None:
    figure = level_curves(PANELS, [0.3, 0.05], ["<b>", "&"], "Temperature τ", log=False)
    assert [trace["name"] for trace in figure["data"]] == ["&lt;b&gt;", "&amp;"] * 2
    assert figure["data"][0]["error_y"]["array"] == [0.0, 0.1]
    assert all("error_y" not in trace for trace in figure["data"][1:])
    lines = [(line["yref"], line["y0"], line["y1"], line["label"]["text"]) for line in figure["layout"]["shapes"]]
    assert lines == [("y", 0.75, 0.75, "probe"), ("y", 0.8, 0.8, "&lt;CE&gt;")]
    assert figure["layout"]["xaxis"]["type"] == "linear"
