"""Words of Explore that say what the code does."""

from __future__ import annotations

from core.representation.projections import PROJECTIONS
from pages.ui.explore.colouring import COLOURINGS, LOSS_QUANTILE
from pages.ui.explore.the_map import SETTINGS


def test_the_share_of_losses_that_look_alike_is_the_one_that_is_cut_off() -> None:
    assert f"the highest {100 * (1 - LOSS_QUANTILE):g}% alike" in COLOURINGS["loss"].about


def test_every_setting_of_a_map_is_called_by_its_name() -> None:
    names = {parameter.name for entry in PROJECTIONS.values() for parameter in entry.parameters}
    assert {name: name.replace("_", " ") for name in names} == SETTINGS
