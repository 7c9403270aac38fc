"""The map as Plotly gets it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from core.events import Probe
from core.figures.map import SVG_POINTS, hover_texts, map_extent, map_figure
from core.figures.template import Figure

HOSTILE = '<img src=x onerror="alert(1)">'


def made_probe(count: int, classes: int, text: str = "a text", name: str = "class") -> Probe:
    return Probe(
        ids=tuple(range(100, 100 + count)),
        texts=tuple(f"{text} {i}" for i in range(count)),
        labels=tuple(i % classes for i in range(count)),
        classes=tuple(f"{name} {i}" for i in range(classes)),
    )


def drawn(probe: Probe, revision: str = "run") -> Figure:
    points = np.random.default_rng(0).normal(size=(len(probe.ids), 2)).astype(np.float32)
    return map_figure(points, probe, hover_texts(probe), map_extent([points]), revision=revision)


@pytest.mark.parametrize(("count", "classes"), [(0, 2), (1, 2), (10, 3), (SVG_POINTS + 1, 12)])
def test_it_is_json_and_a_figure_that_plotly_accepts(count: int, classes: int) -> None:
    figure = drawn(made_probe(count, classes))
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    go.Figure(figure)


def test_every_point_is_drawn_once_with_its_own_id_and_place() -> None:
    probe = made_probe(10, 3)
    points = np.arange(20, dtype=np.float32).reshape(10, 2)
    traces = map_figure(points, probe, hover_texts(probe), 20.0, revision="run")["data"]
    seen = {
        identity: (label, x, y)
        for label, trace in enumerate(traces)
        for identity, x, y in zip(trace["customdata"], trace["x"], trace["y"], strict=True)
    }
    assert seen == {100 + i: (i % 3, 2 * i, 2 * i + 1) for i in range(10)}


def test_a_class_without_points_keeps_its_trace() -> None:
    probe = Probe(ids=(0,), texts=("a",), labels=(2,), classes=("x", "y", "z"))
    assert [len(trace["x"]) for trace in drawn(probe)["data"]] == [0, 0, 1]


def test_twelve_classes_differ_in_colour_or_symbol() -> None:
    markers = [trace["marker"] for trace in drawn(made_probe(24, 12))["data"]]
    assert len({(marker["color"], marker["symbol"][0]) for marker in markers}) == 12


def test_hostile_texts_and_names_are_escaped() -> None:
    figure = drawn(made_probe(4, 2, text=HOSTILE, name=HOSTILE))
    assert "<img" not in json.dumps(figure)
    assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt; 0" in figure["data"][0]["hovertext"][0]


def test_a_text_is_never_read_as_a_template() -> None:
    figure = drawn(made_probe(2, 2, text="%{y} %{customdata}", name="%{y}"))
    for trace in figure["data"]:
        assert trace["hovertemplate"] == "%{hovertext}<extra></extra>"
        assert "%{customdata}" in trace["hovertext"][0]


def test_long_texts_are_cut() -> None:
    hover = hover_texts(made_probe(1, 1, text="x" * 2000, name="y" * 2000))[0]
    assert len(hover) < 500
    assert hover.count("<br>") <= 6


def test_many_points_are_drawn_by_webgl() -> None:
    assert {trace["type"] for trace in drawn(made_probe(SVG_POINTS, 2))["data"]} == {"scatter"}
    assert {trace["type"] for trace in drawn(made_probe(SVG_POINTS + 1, 2))["data"]} == {"scattergl"}


def test_the_axes_hold_every_frame_and_both_have_one_scale() -> None:
    frames = [np.array([[1.0, -2.0]], np.float32), np.array([[0.5, 3.0]], np.float32)]
    extent = map_extent(frames)
    probe = made_probe(1, 1)
    layout = map_figure(frames[0], probe, hover_texts(probe), extent, revision="run")["layout"]
    assert extent > 3.0
    assert layout["xaxis"]["range"] == layout["yaxis"]["range"] == [-extent, extent]
    assert layout["yaxis"]["scaleanchor"] == "x"


@pytest.mark.parametrize("frames", [[], [np.zeros((0, 2), np.float32)]], ids=["no frames", "empty frames"])
def test_without_points_the_axes_have_a_width_all_the_same(frames: list[np.ndarray]) -> None:
    assert map_extent(frames) > 0


def test_zoom_and_selection_stay_as_long_as_the_revision_does() -> None:
    layout = drawn(made_probe(4, 2), revision="run 7")["layout"]
    assert layout["uirevision"] == layout["selectionrevision"] == "run 7"


def test_training_examples_are_drawn_open_and_say_so() -> None:
    probe = replace(made_probe(6, 2), splits=("validation",) * 4 + ("train",) * 2)
    symbols = {
        identity: symbol
        for trace in drawn(probe)["data"]
        for identity, symbol in zip(trace["customdata"], trace["marker"]["symbol"], strict=True)
    }
    assert [symbols[100 + i].endswith("-open") for i in range(6)] == [False] * 4 + [True] * 2
    assert [" · training" in hover for hover in hover_texts(probe)] == [False] * 4 + [True] * 2
