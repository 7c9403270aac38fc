"""Curves of the loss lab, which the browser fills."""

from __future__ import annotations

import json

from core.figures.lab_curves import lab_figure
from tests.cases import each


@each("settings", [1, 2])
@each(("measured", "panels"), [(True, 4), (False, 2)])
def test_every_setting_has_its_curves_in_the_panels_that_are_there(settings: int, measured: bool, panels: int) -> None:
    figure = lab_figure(settings, measured=measured, height=400)
    json.dumps(figure, allow_nan=False)
    fields = {"loss", "contrast", "collapse", "bound", "norm"} | ({"alignment", "uniformity"} if measured else set())
    for setting in range(settings):
        assert {t["meta"]["field"] for t in figure["data"] if t["meta"]["panel"] == setting} == fields
    axes = {trace["yaxis"] for trace in figure["data"]}
    assert len(axes) == panels
    assert all(axis.replace("y", "yaxis") in figure["layout"] for axis in axes)
    assert figure["layout"]["yaxis2"]["type"] == "log"
    assert len(figure["layout"]["annotations"]) == panels


def test_two_settings_differ_in_name_and_colour() -> None:
    first, second = (
        next(t for t in lab_figure(2, measured=True, height=400)["data"] if t["meta"]["panel"] == number)
        for number in (0, 1)
    )
    assert (first["name"], second["name"]) == ("loss, A", "loss, B")
    assert first["line"]["color"] != second["line"]["color"]
