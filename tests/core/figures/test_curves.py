"""The curves as Plotly gets them."""

from __future__ import annotations

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from core.config import KnobTurn
from core.events import Evaluation, Step
from core.figures.curves import KNOB_SYMBOLS, PANELS, PART_COLOURS, curves_figure
from core.figures.template import MAX_CURVE_POINTS, Figure
from core.losses.registry import LOSSES


def made_steps(count: int) -> list[Step]:
    values = {"loss": 1.5, "loss.cross_entropy": 0.7, "loss.supcon": 2.0, "collapse_line": 2.7, "lower_bound": 1.9}
    values |= {"grad_norm": 3.0, "pooled_grad.cross_entropy": 0.1, "pooled_grad.supcon": 0.2}
    values |= {"pooled_cosine": 0.3, "learning_rate": 1e-5}
    return [Step(i, values | {"loss": 1 / i}) for i in range(1, count + 1)]


def made_evaluation(step: int, split: str = "validation") -> Evaluation:
    return Evaluation(step, split, {"accuracy": 0.8, "accuracy_low": 0.7, "accuracy_high": 0.9})


def drawn(
    steps: list[Step] | None = None,
    evaluations: list[Evaluation] | None = None,
    turns: list[KnobTurn] | None = None,
    facts: dict[str, float] | None = None,
) -> Figure:
    return curves_figure(steps or [], evaluations or [], turns or [], facts or {}, 100, revision="run")


def trace_named(figure: Figure, name: str) -> Any:
    (found,) = [trace for trace in figure["data"] if trace.get("name") == name]
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 50, 5_000])
def test_it_is_json_and_a_figure_that_plotly_accepts(count: int) -> None:
    figure = drawn(
        made_steps(count),
        [made_evaluation(s) for s in range(0, count, 10)],
        [KnobTurn(step=3, name="lambda", value=0.5)],
        {"majority_rate": 0.5},
    )
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    go.Figure(figure)


def test_nothing_yet_gives_an_empty_figure_with_all_panels() -> None:
    figure = drawn()
    assert figure["data"] == []
    assert [note["text"] for note in figure["layout"]["annotations"]] == [panel.title for panel in PANELS]
    assert figure["layout"]["xaxis"]["range"] == [0, 100]


def test_every_measure_has_its_line() -> None:
    steps = made_steps(20)
    drawn_lines = {trace["name"]: trace["y"][-1] for trace in drawn(steps)["data"]}
    assert sorted(drawn_lines.values()) == pytest.approx(sorted(steps[-1].values.values()))


def test_a_measure_that_no_step_has_gets_no_line() -> None:
    figure = drawn([Step(1, {"loss": 1.0}), Step(2, {"loss": 0.5})])
    assert [trace["name"] for trace in figure["data"]] == ["total"]


def test_a_line_has_the_steps_that_have_the_measure() -> None:
    steps = [Step(1, {"loss": 1.0}), Step(2, {"loss": 0.5, "loss.supcon": 2.0}), Step(3, {"loss": 0.4})]
    assert trace_named(drawn(steps), "SCL")["x"] == [2]
    assert trace_named(drawn(steps), "total")["x"] == [1, 2, 3]


def test_a_long_run_is_thinned_and_keeps_its_ends() -> None:
    line = trace_named(drawn(made_steps(5_000)), "total")
    assert len(line["x"]) == len(line["y"]) == MAX_CURVE_POINTS
    assert (line["x"][0], line["x"][-1]) == (1, 5_000)


def test_a_value_that_is_no_number_leaves_a_gap() -> None:
    steps = [Step(1, {"loss": math.nan}), Step(2, {"loss": 0.5}), Step(3, {"loss": math.inf})]
    assert trace_named(drawn(steps), "total")["y"] == [None, 0.5, None]


@pytest.mark.parametrize("name", KNOB_SYMBOLS)
def test_a_turn_is_marked_between_the_steps(name: Any) -> None:
    layout = drawn(made_steps(10), turns=[KnobTurn(step=4, name=name, value=0.25)])["layout"]
    (shape,) = layout["shapes"]
    assert (shape["x0"], shape["x1"]) == (3.5, 3.5)
    assert layout["annotations"][-1]["text"] == f"{KNOB_SYMBOLS[name]} 0.25"


def test_every_turn_has_its_mark() -> None:
    turns = [KnobTurn(step=s, name="learning_rate", value=2.0) for s in (2, 5, 9)]
    assert [shape["x0"] for shape in drawn(turns=turns)["layout"]["shapes"]] == [1.5, 4.5, 8.5]


def test_only_validation_moves_on_screen() -> None:
    evaluations = [made_evaluation(0), made_evaluation(10), made_evaluation(10, "test")]
    assert trace_named(drawn(evaluations=evaluations), "accuracy")["x"] == [0, 10]


def test_the_interval_is_a_closed_band_around_the_accuracy() -> None:
    band = drawn(evaluations=[made_evaluation(0), made_evaluation(10)])["data"][0]
    assert band["x"] == [0, 10, 10, 0]
    assert band["y"] == [0.9, 0.9, 0.7, 0.7]


def test_the_reference_lines_are_drawn_when_they_are_known() -> None:
    figure = drawn(evaluations=[made_evaluation(0, "baseline")], facts={"majority_rate": 0.5})
    assert trace_named(figure, "majority class")["y"] == [0.5, 0.5]
    assert trace_named(figure, "linear probe, untrained encoder")["y"] == [0.8, 0.8]
    assert trace_named(figure, "majority class")["x"] == [0, 100]


def test_every_loss_has_a_colour_of_its_own() -> None:
    assert PART_COLOURS.keys() == LOSSES.keys()
    assert len(set(PART_COLOURS.values())) == len(LOSSES)


def test_the_panels_do_not_overlap() -> None:
    layout = drawn()["layout"]
    domains = [layout["yaxis" if i == 0 else f"yaxis{i + 1}"]["domain"] for i in range(len(PANELS))]
    edges = [edge for low, high in reversed(domains) for edge in (low, high)]
    assert edges == sorted(edges)
    assert 0 <= edges[0] < edges[-1] <= 1
