"""Words of Explore that say what the code does."""

from __future__ import annotations

from pages.ui.explore.frame_map import COLOURINGS, LOSS_QUANTILE


def test_the_share_of_losses_that_look_alike_is_the_one_that_is_cut_off() -> None:
    assert f"the highest {100 * (1 - LOSS_QUANTILE):g}% alike" in COLOURINGS["loss"].about
