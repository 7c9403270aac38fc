"""What was said of one text, step by step."""

from __future__ import annotations

import json

import numpy as np

from core.figures.prediction_history import confidence_figure

HOSTILE = "<img src=x onerror=alert(1)>"


def drawn(classes: tuple[str, ...] = ("bad", "good")) -> dict:
    shares = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    return confidence_figure((0, 5, 9), shares, classes, (True, False, True), 5, revision="run")


def test_each_class_has_a_line_over_the_steps() -> None:
    figure = drawn()
    assert [trace["y"] for trace in figure["data"]] == [[0.9, 0.4, 0.2], [0.1, 0.6, 0.8]]
    assert all(trace["x"] == [0, 5, 9] for trace in figure["data"])
    assert figure["layout"]["shapes"][0]["x0"] == 5


def test_estimates_are_drawn_open() -> None:
    for trace in drawn()["data"]:
        assert [symbol.endswith("-open") for symbol in trace["marker"]["symbol"]] == [False, True, False]


def test_class_names_are_escaped() -> None:
    assert "<img" not in json.dumps(drawn((HOSTILE, "good")))
