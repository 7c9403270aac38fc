"""The interval chart of an experiment, parsed as XML: marks lie at their values."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from core.figures.interval_chart import WORSE, IntervalRow, interval_chart
from tests.cases import each

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [
    IntervalRow("CE", (0.70, 0.74)),
    IntervalRow("CE + SCL", (0.75, 0.77), 0.04, 0.01, 0.07, shown=True),
    IntervalRow("R-Drop", (0.71,), -0.02, -0.05, 0.01, worse=True),
]


def parsed(rows: list[IntervalRow], percent: bool = True) -> ElementTree.Element:
    return ElementTree.fromstring(interval_chart(rows, score="Test accuracy", unit="points", percent=percent))


def scale(root: ElementTree.Element, left: bool) -> tuple[float, float]:
    """Return pixels per unit and the pixel of 0, from two ticks of a panel."""
    middle = float((root.get("viewBox") or "").split()[2]) * 0.6
    ticks = [
        (float(one.get("x") or 0), float((one.text or "").replace("−", "-")))
        for one in root.iter(f"{SVG}text")
        if re.fullmatch(r"−?[\d.]+", one.text or "") and (float(one.get("x") or 0) < middle) == left
    ]
    (x0, v0), (x1, v1) = ticks[0], ticks[-1]
    size = (x1 - x0) / (v1 - v0)
    return size, x0 - size * v0


def test_scores_and_differences_are_where_they_are_and_filled_where_they_are_shown() -> None:
    root = parsed(ROWS)
    for left, radius, values in ((True, "3.4", [70, 74, 75, 77, 71]), (False, "4.5", [4, -2])):
        size, zero = scale(root, left=left)
        marks = [one for one in root.iter(f"{SVG}circle") if one.get("r") == radius]
        assert [(float(one.get("cx") or 0) - zero) / size for one in marks] == pytest.approx(values, abs=0.1)
    assert [one.get("fill") == "none" for one in marks] == [False, True]
    assert [one.get("stroke") == WORSE for one in marks] == [False, True]


def test_what_came_from_outside_is_text() -> None:
    text = interval_chart([IntervalRow('<script>&"</script>', (0.5,))], score="<b>", unit="&", percent=False)
    root = ElementTree.fromstring(text)
    assert list(root.iter(f"{SVG}script")) == []
    assert any(one.text == '<script>&"</script>' for one in root.iter(f"{SVG}title"))


@each("scores", [(0.5,), (0.0, 0.0), (1e-9, 2e-9), (-3.0, 400.0)])
def test_any_scores_have_room(scores: tuple[float, ...]) -> None:
    root = parsed([IntervalRow("one", scores)], percent=False)
    width = float((root.get("viewBox") or "").split()[2])
    assert all(0 < float(one.get("cx") or 0) < width for one in root.iter(f"{SVG}circle"))
    assert "Difference" not in ElementTree.tostring(root, "unicode")
    assert interval_chart([IntervalRow("CE", ())], score="a", unit="b", percent=True) == ""


def test_what_the_scores_have_to_beat_is_where_it_belongs() -> None:
    root = parsed([IntervalRow("CE", (0.70, 0.74), probe=0.66, majority=0.72), *ROWS[1:]])
    size, zero = scale(root, left=True)
    strokes = {title.text: path for path in root.iter(f"{SVG}path") for title in path.iter(f"{SVG}title")}
    for name, share in (("linear probe of the encoder before training", 66.0), ("majority class", 72.0)):
        x = float(str(strokes[name].get("d")).removeprefix("M").split()[0])
        assert x == pytest.approx(zero + size * share, abs=0.2)
    far = parsed([IntervalRow("CE", (0.70, 0.74), majority=0.1)])
    assert not list(far.iter(f"{SVG}path"))  # so far away that it would compress the dots
