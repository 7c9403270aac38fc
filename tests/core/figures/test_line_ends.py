"""Labels at the ends of lines."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from core.figures.line_ends import LINE_PX, MARGIN_PX, line_ends, margin_px, spread
from core.figures.template import Figure
from tests.cases import each

AXES = {"yaxis": {"domain": [0.5, 1.0]}, "yaxis3": {"domain": [0.0, 0.5], "type": "log"}}


def trace(name: str, *values: float | None, axis: str = "y") -> Figure:
    return {"y": list(values), "yaxis": axis, "meta": name, "line": {"color": "#123456", "dash": "dash"}}


class TestSpread:
    def test_nothing_leaves_the_panel(self) -> None:
        assert spread([99.0, 100.0, 100.0], 10, 0, 100) == [80.0, 90.0, 100.0]
        assert spread([0.0, 1.0], 10, 0, 100) == [0.0, 10.0]

    def test_more_than_fit_share_the_room(self) -> None:
        assert spread([5.0] * 5, 10, 0, 20) == [0.0, 5.0, 10.0, 15.0, 20.0]

    @each("seed", range(5))
    def test_labels_move_as_little_as_possible(self, seed: int) -> None:
        """The sum of squares is minimal among all positions on a grid that keep gap and order."""
        wanted = np.random.default_rng(seed).uniform(0, 20, 3).round()
        found = spread(wanted.tolist(), 6, 0, 20)
        order = np.argsort(wanted, kind="stable")
        assert all(b - a >= 6 - 1e-9 for a, b in pairwise(np.array(found)[order]))
        cost = np.square(np.array(found) - wanted).sum()
        grid = [c for c in product(np.arange(0, 20.5, 0.5), repeat=3) if c[1] - c[0] >= 6 and c[2] - c[1] >= 6]
        assert cost <= min(np.square(np.array(c) - wanted[order]).sum() for c in grid) + 1e-9


class TestEnds:
    def test_a_name_is_where_its_line_ends(self) -> None:
        (note,) = line_ends([trace("CE", 1.0, 0.25, None)], AXES, 400)
        assert (note["yref"], note["y"], note["yshift"]) == ("y", 0.25, 0)
        assert note["text"].endswith("</span> CE")
        assert "#123456" in note["text"]

    def test_on_a_logarithmic_axis_it_is_at_the_logarithm(self) -> None:
        (note,) = line_ends([trace("CE", 1.0, 100.0, axis="y3")], AXES, 400)
        assert note["y"] == pytest.approx(2.0)
        assert line_ends([trace("CE", 1.0, 0.0, axis="y3")], AXES, 400) == []

    def test_names_that_would_meet_are_moved_apart(self) -> None:
        notes = line_ends([trace("a", 0.0, 0.5), trace("b", 1.0, 0.5)], AXES, 400)
        assert notes[1]["yshift"] - notes[0]["yshift"] == pytest.approx(LINE_PX)

    def test_a_line_without_a_name_or_a_value_has_none(self) -> None:
        assert line_ends([trace("", 1.0), trace("x", None)], AXES, 400) == []

    def test_the_longest_name_makes_the_margin(self) -> None:
        assert margin_px([]) < margin_px([trace("CE", 1.0)]) < margin_px([trace("collapse line", 1.0)])
        assert margin_px([trace("x" * 200, 1.0)]) == MARGIN_PX[1]
