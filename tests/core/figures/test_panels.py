"""Panels fill their figure without overlapping."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from core.figures.panels import Place, axis_name, grid, stacked
from tests.cases import each


def overlap(one: Place, other: Place) -> bool:
    across = min(one.x[1], other.x[1]) - max(one.x[0], other.x[0])
    down = min(one.y[1], other.y[1]) - max(one.y[0], other.y[0])
    return across > 0 and down > 0


@each(("number", "names"), [(1, ("y", "yaxis")), (2, ("y2", "yaxis2"))])
def test_names_are_plotlys(number: int, names: tuple[str, str]) -> None:
    assert (axis_name("y", number), axis_name("y", number, layout=True)) == names


def test_a_stack_goes_down_by_its_shares() -> None:
    places = stacked([1, 3, 5], 0.1, [1.0, 2.0, 1.0])
    assert [place.number for place in places] == [1, 3, 5]
    assert [place.y[1] - place.y[0] for place in places] == pytest.approx([0.2, 0.4, 0.2])
    assert places[0].y[1] == 1.0
    assert places[-1].y[0] == pytest.approx(0.0)
    assert all(above.y[0] - below.y[1] == pytest.approx(0.1) for above, below in pairwise(places))


def test_no_panels_at_all() -> None:
    assert stacked([], 0.1) == grid(0, 3, (0.1, 0.1)) == []


@each("count", [1, 2, 3, 4, 7])
def test_a_grid_is_read_like_a_page(count: int) -> None:
    places = grid(count, 3, (0.1, 0.2))
    assert len(places) == count
    assert places[0].x[0] == 0.0
    assert places[0].y[1] == pytest.approx(1.0)
    assert not any(overlap(one, other) for one, other in combinations(places, 2))
    assert all(after.x[0] > before.x[0] or after.y[1] < before.y[1] for before, after in pairwise(places))


def test_a_panel_of_a_grid_has_both_axes_and_one_of_a_stack_its_y_axis() -> None:
    (alone,) = grid(1, 2, (0.1, 0.1))
    assert alone.layout({"type": "log"}) == {
        "xaxis": {"domain": [0.0, 0.45], "anchor": "y", "type": "log"},
        "yaxis": {"domain": [0.0, 1.0], "anchor": "x"},
    }
    assert stacked([2], 0.1)[0].layout(y={"nticks": 4}) == {"yaxis2": {"domain": [0.0, 1.0], "nticks": 4}}
    assert stacked([2], 0.1)[0].axes == {"xaxis": "x", "yaxis": "y2"}


def test_a_line_goes_through_its_panel_alone() -> None:
    second = grid(2, 2, (0.1, 0.1))[1]
    line = second.upright(3.5, {"width": 1})
    assert (line["xref"], line["yref"], line["x0"], line["x1"]) == ("x2", "y2 domain", 3.5, 3.5)
    assert second.title("τ")["x"] == second.x[0]
