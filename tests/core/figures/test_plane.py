"""The plane of alignment and uniformity in Plotly's form."""

from __future__ import annotations

import json

import plotly.graph_objects as go

from core.figures.plane import plane_figure


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
