"""Curves in Plotly's form."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import plotly.graph_objects as go
import pytest

from core.config import KnobTurn
from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS
from core.events import Evaluation, Step
from core.figures.curves import (
    KNOB_SYMBOLS,
    curves_figure,
)
from core.figures.smoothing import Smoothing
from core.figures.template import MAX_CURVE_POINTS, QUIET, Figure
from tests.cases import each


def made_steps(count: int) -> list[Step]:
    values = {"loss": 1.5, "loss.cross_entropy": 0.7, "loss.supcon": 2.0}
    values |= {"collapse_line.supcon": 2.7, "lower_bound.supcon": 1.9}
    values |= {"grad_norm": 3.0, "learning_rate": 1e-5}
    compared = {"shared_grad.cross_entropy": 0.1, "shared_grad.supcon": 0.2, "shared_cosine": 0.3, "shared_block": 6.0}
    return [Step(i, values | {"loss": 1 / i} | (compared if i % 5 == 1 else {})) for i in range(1, count + 1)]


def titles(figure: Figure) -> list[str]:
    """Return the titles of the panels, from top to bottom."""
    notes = [note for note in figure["layout"]["annotations"] if note["xref"] == "paper" and note["x"] == 0]
    names = (re.match("<b>(.*)</b><span> ", note["text"]) for note in sorted(notes, key=lambda note: -note["y"]))
    return [found[1] for found in names if found]


def made_evaluation(step: int, split: str = "validation") -> Evaluation:
    return Evaluation(step, split, {"accuracy": 0.8, "accuracy_low": 0.7, "accuracy_high": 0.9})


def drawn(
    steps: list[Step] | None = None,
    evaluations: list[Evaluation] | None = None,
    turns: list[KnobTurn] | None = None,
    facts: dict[str, float] | None = None,
    phase_ends: tuple[int, ...] = (100,),
) -> Figure:
    return curves_figure(steps or [], evaluations or [], turns or [], facts or {}, phase_ends, revision="run")


def test_a_rank_correlation_takes_the_place_of_accuracy() -> None:
    values = made_evaluation(0).values | {"train_rows": 9.0}
    figure = drawn(
        made_steps(20), [Evaluation(step, "validation", values | {"spearman": step / 10}) for step in (0, 5)]
    )
    [line] = [trace for trace in figure["data"] if trace.get("name") == "Spearman's ρ"]
    assert (line["x"], line["y"]) == ([0, 5], [0.0, 0.5])
    [floor] = [trace for trace in figure["data"] if trace.get("name") == "encoder before training"]
    assert floor["y"] == [0.0, 0.0]
    assert titles(figure)[1] == "Spearman's ρ on validation"
    assert not any("probe" in trace.get("name", "") for trace in figure["data"])


def trace_named(figure: Figure, name: str) -> Any:
    (found,) = [trace for trace in figure["data"] if trace.get("name") == name]
    return found


@each("count", [0, 1, 2, 50, 5_000])
def test_it_is_json_and_a_figure_that_plotly_accepts(count: int) -> None:
    figure = drawn(
        made_steps(count),
        [made_evaluation(s) for s in range(0, count, 10)],
        [KnobTurn(step=3, name="lambda", value=0.5)],
        {"majority_rate": 0.5},
    )
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    go.Figure(figure)


def test_nothing_yet_gives_an_empty_figure_with_the_panels_that_every_run_has() -> None:
    figure = drawn()
    assert figure["data"] == []
    assert titles(figure) == ["Loss, nats", "Validation accuracy", "Gradient norm", "Learning rate"]
    assert figure["layout"]["xaxis"]["range"] == [0, 100]
    assert (figure["layout"]["xaxis"]["anchor"], figure["layout"]["xaxis"]["position"]) == ("free", 0)


def test_every_measure_has_its_line() -> None:
    steps = made_steps(21)
    drawn_lines = {trace["name"]: trace["y"][-1] for trace in drawn(steps)["data"]}
    values = {name: value for name, value in steps[-1].values.items() if name != "shared_block"}
    assert sorted(drawn_lines.values()) == pytest.approx(sorted(values.values()))


def test_a_value_that_is_no_number_leaves_a_gap() -> None:
    steps = [Step(1, {"loss": math.nan}), Step(2, {"loss": 0.5}), Step(3, {"loss": math.inf})]
    assert trace_named(drawn(steps), "total")["y"] == [None, 0.5, None]


@each("name", KNOB_SYMBOLS)
def test_a_turn_is_marked_between_the_steps(name: Any) -> None:
    layout = drawn(made_steps(10), turns=[KnobTurn(step=4, name=name, value=0.25)])["layout"]
    assert {(shape["x0"], shape["x1"]) for shape in layout["shapes"]} == {(3.5, 3.5)}
    assert layout["annotations"][-1]["text"] == f"{KNOB_SYMBOLS[name]} 0.25"


class TestTerms:
    @each("name", PRESETS)
    def test_of_every_preset_no_two_lines_look_alike(self, name: str) -> None:
        for given in PRESETS[name].objectives:
            keys = build(ObjectiveConfig, given).keys
            pieces = [f"{key}.{piece}" for key in keys for piece in ("ce", "kl") if key.startswith("rdrop")]
            values = {"loss": 1.0} | {f"loss.{part}": 1.0 for part in (*keys, *pieces)}
            values |= {f"collapse_line.{key}": 1.0 for key in keys} | {f"shared_grad.{key}": 1.0 for key in keys}
            values |= {"shared_cosine": 0.5}
            compared = values | {"shared_block": 6.0}
            traces = drawn([Step(1, compared), Step(2, compared)])["data"]
            assert len(traces) == len(values)
            for panel in ("y", "y3"):
                looks = [(t["line"]["color"], t["line"]["dash"]) for t in traces if t["yaxis"] == panel]
                references = [look for look in looks if look[0] == QUIET]
                assert len(set(looks) - {*references}) == len(looks) - len(references)
            assert len({(t["name"], t["yaxis"]) for t in traces}) == len(traces)

    def test_a_phase_draws_its_parts_where_it_was(self) -> None:
        steps = [Step(1, {"loss": 1.0, "loss.simcse": 1.0}), Step(2, {"loss": 0.9, "loss.simcse": 0.9})]
        steps += [Step(3, {"loss": 0.7, "loss.cross_entropy": 0.7}), Step(4, {"loss": 0.6, "loss.cross_entropy": 0.6})]
        figure = drawn(steps, phase_ends=(2, 4))
        assert trace_named(figure, "SimCSE")["x"] == [1, 2]
        assert trace_named(figure, "CE")["x"] == [3, 4]
        assert trace_named(figure, "total")["x"] == [1, 2, 3, 4]


def test_a_line_between_the_steps_marks_the_next_phase() -> None:
    layout = drawn(made_steps(10), phase_ends=(40, 100))["layout"]
    assert {(shape["x0"], shape["x1"]) for shape in layout["shapes"]} == {(40.5, 40.5)}
    (note,) = [note for note in layout["annotations"] if note["text"] == "next phase"]
    assert (note["x"], note["y"]) == (40.5, 0)  # below the labels of turns
    assert layout["xaxis"]["range"] == [0, 100]


def test_labels_of_turns_never_meet() -> None:
    """Repeated turns of a knob share the label of the last value. Another knob's label moves below it."""
    turns = [KnobTurn(step=step, name="temperature", value=step / 100) for step in (20, 21, 22, 60)]
    turns += [KnobTurn(step=23, name="lambda", value=0.5)]
    notes = drawn(made_steps(10), turns=turns, phase_ends=(100,))["layout"]["annotations"]
    found = {note["text"]: note["yshift"] for note in notes if "yshift" in note and note["text"][0] in "τλ"}
    assert list(found) == ["τ 0.22", "λ 0.5", "τ 0.6"]
    assert {note["y"] for note in notes if "yshift" in note and note["text"] in found} == {1}
    assert found["τ 0.22"] == found["τ 0.6"] == 0
    assert found["λ 0.5"] < 0


def test_the_interval_is_a_closed_band_around_the_accuracy_on_validation() -> None:
    band = drawn(evaluations=[made_evaluation(0), made_evaluation(10), made_evaluation(10, "test")])["data"][0]
    assert band["x"] == [0, 10, 10, 0]
    assert band["y"] == [0.9, 0.9, 0.7, 0.7]


def test_the_reference_lines_are_drawn_when_they_are_known() -> None:
    figure = drawn(evaluations=[made_evaluation(0, "baseline")], facts={"majority_rate": 0.5})
    assert trace_named(figure, "majority class")["y"] == [0.5, 0.5]
    assert trace_named(figure, "linear probe, encoder before training")["y"] == [0.8, 0.8]
    assert trace_named(figure, "majority class")["x"] == [0, 100]


class TestCosine:
    def test_it_says_which_terms_on_which_block_and_how_often(self) -> None:
        figure = drawn(made_steps(21))
        assert titles(figure)[2] == "Gradient norm (“total”: all weights; “CE” and “SCL”: only block 6)"
        assert titles(figure)[3] == "Cosine between CE and SCL gradients (block 6)"
        cosine = trace_named(figure, "cosine on block 6, every 5 steps")
        assert (cosine["x"], cosine["y"], cosine["yaxis"]) == ([1, 6, 11, 16, 21], [0.3] * 5, "y4")
        assert trace_named(figure, "SCL on block 6, every 5 steps")["yaxis"] == "y3"

    @each("count", [5_001, 20_001])
    def test_a_long_run_is_thinned_by_the_steps_that_have_it(self, count: int) -> None:
        cosine = trace_named(drawn(made_steps(count)), "cosine on block 6, every 5 steps")
        assert len(cosine["x"]) == MAX_CURVE_POINTS
        assert (cosine["x"][0], cosine["x"][-1]) == (1, count)

    def test_where_there_was_nothing_to_compare_the_line_is_broken(self) -> None:
        quiet = [Step(i, {"loss": 1.0}) for i in range(12, 41)]
        steps = [*made_steps(11), *quiet, *(step for step in made_steps(61) if step.step > 40)]
        cosine = trace_named(drawn(steps), "cosine on block 6, every 5 steps")
        assert cosine["x"] == [1, 6, 11, 12, 41, 46, 51, 56, 61]
        assert cosine["y"][3] is None
        assert cosine["y"].count(None) == 1

    def test_a_batch_without_positives_leaves_a_gap_on_the_logarithmic_axis(self) -> None:
        steps = made_steps(20)
        empty = Step(6, {**steps[5].values, "shared_grad.supcon": 0.0})
        figure = drawn([*steps[:5], empty, *steps[6:]])
        line = next(trace for trace in figure["data"] if trace.get("meta") == "SCL" and trace["yaxis"] == "y3")
        assert dict(zip(line["x"], line["y"], strict=True)) == {1: 0.2, 6: None, 11: 0.2, 16: 0.2}

    def test_two_phases_on_two_blocks_name_both(self) -> None:
        later = [Step(step.step, step.values | {"shared_block": 4.0}) for step in made_steps(20) if step.step > 10]
        figure = drawn([*made_steps(20)[:10], *[step for step in later if "shared_cosine" in step.values]])
        assert "blocks 4, 6" in titles(figure)[3]


def test_probe_and_classifier_are_two_lines() -> None:
    values = made_evaluation(0).values | {"train_rows": 200.0}
    probed = [Evaluation(step, "validation", values) for step in (0, 4)]
    figure = drawn(evaluations=[*probed, made_evaluation(6), made_evaluation(10)])
    assert titles(figure)[1] == "Validation accuracy: linear probe, then classifier"
    assert trace_named(figure, "linear probe of the frame, 200 rows")["x"] == [0, 4]
    assert trace_named(figure, "accuracy")["x"] == [6, 10]


class TestSmoothing:
    def test_the_raw_loss_stays_behind_and_is_what_hover_says(self) -> None:
        steps = [Step(i, {"loss": float(i % 2), "loss.supcon": 1.0, "learning_rate": float(i)}) for i in range(1, 101)]
        strong = Smoothing("exponential", 0.9)
        data = curves_figure(steps, [], [], {}, (100,), revision="run", smoothing=strong)["data"]
        raw, line = [trace for trace in data if trace["name"] == "total"]
        assert raw["y"] == line["customdata"] == [float(i % 2) for i in range(1, 101)]
        assert (raw["hoverinfo"], line["hovertemplate"]) == ("skip", "%{customdata:.4g}")
        assert "hovertemplate" not in raw  # it would list the line twice
        assert max(line["y"][50:]) - min(line["y"][50:]) < 0.12
        (schedule,) = [trace for trace in data if trace["name"] == "learning rate"]
        assert schedule["y"] == [float(i) for i in range(1, 101)]

    def test_a_long_run_is_smoothed_before_it_is_thinned(self) -> None:
        steps = [Step(i, {"loss": float(i % 2)}) for i in range(1, 8_001)]
        data = curves_figure(steps, [], [], {}, (8_000,), revision="run", smoothing=Smoothing("average", 2.0))["data"]
        assert len(data[1]["y"]) == MAX_CURVE_POINTS
        assert set(data[1]["y"][1:-1]) <= {0.33333, 0.66667}


def test_every_line_of_losses_and_scores_has_its_name_at_its_end_and_references_differ_in_their_strokes() -> None:
    figure = drawn(made_steps(21), [made_evaluation(0, "baseline"), made_evaluation(20)], facts={"majority_rate": 0.5})
    ends = [note["text"].split("</span> ")[1] for note in figure["layout"]["annotations"] if note["x"] == 1]
    assert ends == ["total", "CE", "SCL", "collapse line", "lower bound", "classifier", "majority", "probe",
                    "total", "CE", "SCL"]  # fmt: skip
    dashes = [trace["line"]["dash"] for trace in figure["data"] if "meta" in trace and trace["line"]["color"] == QUIET]
    references = [dash for dash in dashes if dash != "solid"]
    assert len(set(references)) == len(references) == 4


def test_neural_collapse_has_a_panel_where_it_was_measured() -> None:
    values = {step: made_evaluation(step).values | {"nc1": 2.0 / (step + 1), "nc4": 0.1 * step} for step in (0, 10)}
    figure = drawn(made_steps(20), [Evaluation(step, "validation", of_step) for step, of_step in values.items()])
    assert titles(figure)[-2:] == ["Neural collapse on validation", "Learning rate"]
    assert trace_named(figure, "NC1: variance within classes")["y"] == pytest.approx([2, 2 / 11], rel=1e-4)
    # A logarithmic axis has no 0.
    (nc4,) = (name for trace in figure["data"] if (name := trace.get("name", "")).startswith("NC4"))
    assert nc4.endswith("(where it is 0, the line breaks, because a log axis has no 0)")
    assert trace_named(figure, nc4)["y"] == [None, 1.0]
    assert "Neural collapse on validation" not in titles(drawn(made_steps(20), [made_evaluation(0)]))
