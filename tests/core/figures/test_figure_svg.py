"""A figure as an SVG: every value has its position on the axes, and text from outside is never markup."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from core.events import Evaluation, Step
from core.figures.curves import curves_figure
from core.figures.figure_svg import figure_svg, with_shared_ranges
from core.figures.template import note
from tests.cases import each

MARGIN = {"l": 60, "r": 40, "t": 10, "b": 30}
NAMESPACE = "{http://www.w3.org/2000/svg}"


def figure(traces: list[dict[str, Any]], **layout: Any) -> dict[str, Any]:
    axes = {"xaxis": {"range": [0, 10], "title": {"text": "step"}}, "yaxis": {"domain": [0, 1], "range": [0, 4]}}
    data = [{"mode": "lines", "xaxis": "x", "yaxis": "y", "line": {"color": "#2f6f9f"}} | trace for trace in traces]
    return {"data": data, "layout": {"margin": MARGIN, **axes, **layout}}


def drawn(given: dict[str, Any]) -> ET.Element:
    """Draw 400 × 240 pixels, of which the panel takes 300 × 200, from (60, 10) to (360, 210)."""
    return ET.fromstring(figure_svg(given, width=400, height=240, about="Curves"))


def lines(root: ET.Element) -> list[list[tuple[float, float]]]:
    found = []
    for line in root.iter(f"{NAMESPACE}polyline"):
        found.append([(float(x), float(y)) for x, y in (point.split(",") for point in line.attrib["points"].split())])
    return found


def words(root: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{NAMESPACE}text")]


def test_values_are_where_the_axes_put_them() -> None:
    root = drawn(figure([{"x": [0, 5, 10], "y": [0, 1, 4]}]))
    assert lines(root) == [[(60.0, 210.0), (210.0, 160.0), (360.0, 10.0)]]


def test_a_logarithmic_axis_puts_powers_at_equal_distances() -> None:
    root = drawn(
        figure([{"x": [0, 5, 10], "y": [0.1, 1, 10]}], yaxis={"domain": [0, 1], "range": [-1, 1], "type": "log"})
    )
    assert lines(root) == [[(60.0, 210.0), (210.0, 110.0), (360.0, 10.0)]]


@each("nothing", [None, float("nan"), float("inf")])
def test_a_line_is_broken_where_nothing_was_measured(nothing: float | None) -> None:
    root = drawn(figure([{"x": [0, 2, 4, 6, 8, 9, 10], "y": [1, 1, nothing, 2, 2, nothing, 2]}]))
    assert [len(line) for line in lines(root)] == [2, 2]
    (dot,) = root.iter(f"{NAMESPACE}circle")  # a single value
    assert (dot.attrib["cx"], dot.attrib["cy"]) == ("360.0", "110.0")


def test_shares_are_percentages_and_minus_is_a_minus() -> None:
    shares = figure([{"x": [0, 10], "y": [0, 1]}], yaxis={"domain": [0, 1], "range": [0, 1], "tickformat": ".1~%"})
    assert {"0%", "50%", "100%"} <= set(words(drawn(shares)))
    below = figure([{"x": [0, 10], "y": [-1, 1]}], yaxis={"domain": [0, 1], "range": [-1, 1]})
    assert "−0.5" in words(drawn(below))
    small = figure([{"x": [0, 10], "y": [0, 1e-4]}], yaxis={"domain": [0, 1], "range": [0, 1e-4]})
    assert "5 × 10⁻⁵" in words(drawn(small))
    assert "1 × 10⁻⁴" in words(drawn(small))


def test_labels_are_text_whatever_they_hold() -> None:
    title = note("<b>Loss</b><span>  &lt;img src=x&gt;</span>", 0, 1, "bottom", {"size": 12})
    root = drawn(figure([{"x": [0, 10], "y": [0, 1]}], annotations=[title]))
    assert "Loss  <img src=x>" in words(root)
    assert next(root.iter(f"{NAMESPACE}tspan")).attrib["font-weight"] == "600"


def test_only_colours_reach_the_markup_which_says_where_its_steps_are() -> None:
    root = drawn(figure([{"x": [0, 10], "y": [0, 1], "line": {"color": 'red" onload="x'}}]))
    assert next(root.iter(f"{NAMESPACE}polyline")).attrib["stroke"] == "currentColor"
    assert [root.attrib[f"data-{name}"] for name in ("x0", "x1", "left", "right")] == ["0", "10", "60", "360"]
    cursors = [line for line in root.iter(f"{NAMESPACE}line") if line.attrib.get("class") == "cursor"]
    assert [cursor.attrib["visibility"] for cursor in cursors] == ["hidden"]


def test_the_curves_of_a_run_are_drawn_with_every_label() -> None:
    steps = [
        Step(
            i, {"loss": 2 / i, "loss.supcon": 1 / i, "loss.cross_entropy": 1 / i, "grad_norm": i, "learning_rate": 1e-4}
        )
        for i in range(1, 31)
    ]
    shares = {"macro_f1": 0.5, "accuracy_low": 0.0, "accuracy_high": 1.0}
    scores = [Evaluation(i, "validation", {"accuracy": i / 40, **shares}) for i in (0, 10, 30)]
    made = curves_figure(steps, scores, (), {"majority_rate": 0.5}, (30,), revision="")
    root = drawn(made | {"layout": made["layout"] | {"margin": MARGIN}})
    labels = " ".join(words(root))
    panels = {"Loss, nats", "Validation accuracy", "Gradient norm", "Learning rate"}
    assert all(name in labels for name in panels | {"SCL", "CE", "total", "majority"})
    places = [place for line in lines(root) for place in line]
    assert places
    assert all(0 <= x <= 400 and 0 <= y <= 240 for x, y in places)
    assert re.search("nan|inf", ET.tostring(root, "unicode")) is None


def test_a_title_that_is_too_long_becomes_smaller_and_loses_its_note() -> None:
    hint = note(f"<b>Loss</b><span>  {'long ' * 20}</span>", 0, 1, "bottom", {"size": 12})
    assert "Loss" in words(drawn(figure([{"x": [0, 10], "y": [0, 1]}], annotations=[hint])))
    sizes = {}
    for title in (
        "<b>Loss</b>",
        "<b>Gradient norm: all weights, its terms on block 6</b>",
        f"<b>{'word ' * 40}</b>",
    ):
        root = drawn(figure([{"x": [0, 10], "y": [1, 2]}], annotations=[note(title, 0, 1, "bottom", {"size": 13})]))
        (found,) = [text for text in root.iter(f"{NAMESPACE}text") if text.find(f"{NAMESPACE}tspan") is not None]
        sizes[title] = float(found.attrib["font-size"])
    first, longer, longest = sizes.values()
    assert first == 13
    assert 13 > longer > longest
    assert longest == pytest.approx(0.75 * 13, abs=0.01)


def test_figures_side_by_side_share_the_axes_that_both_have() -> None:
    free = {"domain": [0, 1]}
    short = figure([{"x": [0, 10], "y": [0, 1]}], yaxis=free)
    long = figure([{"x": [0, 20], "y": [-1, 3]}], yaxis=free, xaxis={"range": [0, 20], "title": {"text": "step"}})
    more = figure(
        [{"x": [0, 10], "y": [0.01, 100.0], "yaxis": "y2"}],
        yaxis2={"domain": [0, 1], "type": "log"},
    )
    first, second, third = with_shared_ranges([short, long, more])
    assert first["layout"]["xaxis"]["range"] == second["layout"]["xaxis"]["range"] == [0, 20]
    low, high = first["layout"]["yaxis"]["range"]
    assert second["layout"]["yaxis"]["range"] == [low, high]
    assert (low, high) == pytest.approx((-1.2, 3.2))  # with a margin of a twentieth
    assert third["layout"]["yaxis2"]["range"] == pytest.approx([-2.2, 2.2])
    assert "yaxis2" not in first["layout"]
    # The input is unchanged.
    assert "range" not in short["layout"]["yaxis"]
    [(left, bottom), (middle, top)] = lines(drawn(first))[0]
    assert (left, middle) == (60.0, 210.0)
    assert (bottom, top) == pytest.approx((210 - 200 * 1.2 / 4.4, 210 - 200 * 2.2 / 4.4), abs=0.1)
