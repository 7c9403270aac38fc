"""Curves of the loss lab, which the browser fills."""

from __future__ import annotations

import json

from core.figures.lab_curves import lab_figure
from tests.cases import each


@each("settings", [1, 2])
@each(("measured", "panels"), [(True, 4), (False, 2)])
def test_every_setting_has_curves_of_its_name_and_colour_in_the_panels_that_are_there(
    settings: int, measured: bool, panels: int
) -> None:
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
    losses = [(t["name"], t["line"]["color"]) for t in figure["data"] if t["meta"]["field"] == "loss"]
    assert [name for name, _ in losses] == (["loss"] if settings == 1 else ["loss, A", "loss, B"])
    assert len({colour for _, colour in losses}) == settings
