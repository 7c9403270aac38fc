"""Curves of several runs in Plotly's form."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from core.errors import ConfigError
from core.figures.run_curves import (
    DASHES,
    FAINT,
    MOST_RUNS,
    Curve,
    MeasurePanel,
    compare_figure,
    mean_curve,
)
from core.figures.smoothing import RAW, Smoothing, smoothed
from core.figures.template import MAX_CURVE_POINTS, Figure, class_colour
from tests.cases import each

RNG = np.random.default_rng(0)
HOSTILE = "<img src=x onerror=alert(1)>" + "y" * 2000
STRONG = Smoothing("exponential", 0.9)


def made(count: int = 30) -> Curve:
    return Curve(list(range(1, count + 1)), RNG.uniform(0.1, 2, count).tolist())


def drawn(*panels: MeasurePanel, names: list[str] | None = None, smoothing: Smoothing = RAW) -> Figure:
    count = len(panels[0].curves) if panels else 0
    names = names or [f"Run {i}" for i in range(count)]
    return compare_figure(panels, names, axis="step", smoothing=smoothing, revision="these")


def loss(*curves: Curve | None, **more: Any) -> MeasurePanel:
    return MeasurePanel("Loss, nats", curves, **more)


@each(("count", "runs"), [(0, 1), (1, 2), (50, MOST_RUNS), (5_000, 2)])
@each("smoothing", [RAW, STRONG, Smoothing("average", 9)])
def test_it_is_json_and_a_figure_that_plotly_accepts(count: int, runs: int, smoothing: Smoothing) -> None:
    curves = [made(count) for _ in range(runs)]
    spread = Curve(curves[0].x, curves[0].y, [0.1] * count)
    panels = loss(*curves), MeasurePanel("Accuracy", [spread, *curves[1:]], percent=True, log=True)
    figure = drawn(*panels, smoothing=smoothing)
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    go.Figure(figure)


@each("panels", [(), (loss(None, None),), (loss(),)])
def test_nothing_to_draw(panels: tuple[MeasurePanel, ...]) -> None:
    figure = drawn(*panels)
    assert figure["data"] == []
    go.Figure(figure)


def test_more_runs_than_can_be_told_apart_are_refused() -> None:
    with pytest.raises(ConfigError, match="7 runs"):
        drawn(loss(*(made() for _ in range(7))))


def test_a_line_in_every_panel_marks_where_branches_leave_their_parent() -> None:
    panels = [loss(made(), made()), MeasurePanel("Accuracy", [made(), made()])]
    figure = compare_figure(panels, ["a", "b"], axis="step", branch_at=12.0, revision="these")
    assert [(line["x0"], line["x1"], line["yref"]) for line in figure["layout"]["shapes"]] == [
        (12.0, 12.0, "y domain"),
        (12.0, 12.0, "y2 domain"),
    ]
    assert "branch" in [note["text"] for note in figure["layout"]["annotations"]]
    go.Figure(figure)


class TestPanels:
    FIGURE = drawn(
        loss(made(), None, made()), MeasurePanel("Accuracy", [made(), made(), None], percent=True), loss(*[None] * 3)
    )

    def test_a_run_keeps_its_look_from_panel_to_panel(self) -> None:
        looks = {(t["name"], t["line"]["color"], t["line"]["dash"]) for t in self.FIGURE["data"]}
        assert looks == {(f"Run {i}", class_colour(i), DASHES[i]) for i in range(3)}
        assert len({*map(class_colour, range(MOST_RUNS))}) == len(set(DASHES)) == MOST_RUNS

    def test_each_run_is_in_the_legend_once_and_switched_as_a_whole(self) -> None:
        shown = [trace["name"] for trace in self.FIGURE["data"] if trace["showlegend"]]
        assert sorted(shown) == ["Run 0", "Run 1", "Run 2"]
        assert {(t["name"], t["legendgroup"]) for t in self.FIGURE["data"]} == {
            (f"Run {i}", f"run {i}") for i in range(3)
        }

    def test_each_measure_has_its_axis_over_the_same_places(self) -> None:
        axes = [(t["name"], t["xaxis"], t["yaxis"]) for t in self.FIGURE["data"]]
        assert axes == [("Run 0", "x", "y"), ("Run 2", "x", "y"), ("Run 0", "x", "y2"), ("Run 1", "x", "y2")]
        layout = self.FIGURE["layout"]
        assert layout["xaxis"]["anchor"] == "y3"
        assert layout["yaxis2"]["tickformat"] == ".1~%"
        assert [t["hovertemplate"] for t in self.FIGURE["data"]] == [*["%{y:.4g}"] * 2, *["%{y:.1%}"] * 2]


class TestSmoothing:
    def test_it_is_smoothed_before_it_is_thinned_and_the_raw_curve_stands_faint_behind(self) -> None:
        curve = made(5_000)
        raw, line = drawn(loss(curve), smoothing=STRONG)["data"]
        whole = smoothed(curve.y, STRONG)
        assert len(raw["x"]) == len(line["x"]) == MAX_CURVE_POINTS
        assert line["x"][-1] == 5_000
        assert raw["y"] == pytest.approx([curve.y[int(x) - 1] for x in raw["x"]], rel=1e-4)
        assert line["y"] == pytest.approx([whole[int(x) - 1] for x in line["x"]], rel=1e-4)
        assert (raw["opacity"], raw["hoverinfo"], raw["showlegend"]) == (FAINT, "skip", False)
        assert line["showlegend"]
        assert "opacity" not in line

    def test_a_measure_of_few_values_is_drawn_as_it_is(self) -> None:
        curve = made(5)
        (line,) = drawn(loss(curve, smooth=False), smoothing=STRONG)["data"]
        assert line["y"] == pytest.approx(curve.y, rel=1e-4)


class TestBand:
    CURVE = Curve([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [0.5, 0.25, 1.0])

    def test_it_is_mean_plus_and_minus_one_deviation(self) -> None:
        band, line = drawn(loss(self.CURVE), smoothing=STRONG)["data"]
        assert list(zip(band["x"], band["y"], strict=True)) == [
            *((0.0, 1.5), (1.0, 2.25), (2.0, 4.0)),
            *((2.0, 2.0), (1.0, 1.75), (0.0, 0.5)),
        ]
        assert line["y"] == [1.0, 2.0, 3.0]
        assert band["legendgroup"] == line["legendgroup"]
        assert not band["showlegend"]

    def test_it_is_cut_where_something_is_missing(self) -> None:
        mean = [1.0, 1.0, None, 1.0, 1.0, 1.0, math.nan, 1.0]
        std = [0.1, 0.1, 0.1, 0.1, None, 0.1, 0.1, 0.1]
        bands = drawn(loss(Curve(list(range(8)), mean, std)))["data"][:-1]
        assert [band["x"] for band in bands] == [[0, 1, 1, 0]]

    @each(("std", "log"), [(0.5, True), (1.0, False), (2.0, False)])
    def test_a_band_that_reaches_zero_makes_the_axis_a_plain_one(self, std: float, log: bool) -> None:
        curve = Curve([0.0, 1.0], [1.0, 2.0], [std, std])
        axis = drawn(loss(curve, made(), log=True))["layout"]["yaxis"]
        assert (axis.get("type") == "log") is log


class TestMean:
    def test_over_the_places_that_all_have(self) -> None:
        curves = [
            Curve([1, 2, 3, 4], [1.0, 2.0, None, 4.0]),
            Curve([1, 2, 3, 4, 5], [3.0, 2.0, 7.0, 4.0, 5.0]),
            Curve([1, 2, 4], [5.0, 5.0, 4.0]),
        ]
        found = mean_curve(curves)
        assert found.x == [1, 2, 4]
        assert found.y == pytest.approx([3, 3, 4])
        assert found.std == pytest.approx([2, math.sqrt(3), 0])
        assert mean_curve(curves[1:2]) == Curve(curves[1].x, curves[1].y, None)

    def test_no_place_in_common(self) -> None:
        found = mean_curve([Curve([0.1], [1.0]), Curve([0.2], [1.0])])
        assert (list(found.x), list(found.y)) == ([], [])
        assert drawn(loss(found))["data"] == []


def test_hostile_names_and_titles_are_text() -> None:
    figure = drawn(
        MeasurePanel(HOSTILE, [made(), Curve([0, 1], [1.0, 1.0], [0.1, 0.1])]), names=[HOSTILE, f"b</b>{HOSTILE}"]
    )
    sent = json.dumps(figure)
    assert "<img" not in sent
    assert "&lt;img" in sent
    assert all(len(trace.get("name", "")) < 300 for trace in figure["data"])


def test_a_late_step_keeps_its_number() -> None:
    curve = Curve([999_998, 999_999, 1_000_000], [1.0, 2.0, 3.0])
    assert drawn(loss(curve))["data"][0]["x"] == [999_998, 999_999, 1_000_000]
