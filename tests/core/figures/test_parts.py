"""Names and colours of an objective's parts."""

from __future__ import annotations

from core.catalogue.losses import LOSSES
from core.figures.parts import MORE_COLOURS, part_colour, part_label
from core.figures.template import ACCENT, QUIET
from tests.cases import each


@each(
    ("part", "label"),
    [
        ("cross_entropy", "CE"),
        ("supcon", "SCL"),
        ("supcon_2", "SCL 2"),
        ("simcse_supervised", "supervised SimCSE"),
        ("simcse_supervised_3", "supervised SimCSE 3"),
        ("rdrop.ce", "R-Drop, its CE"),
        ("rdrop_2.kl", "R-Drop 2, its KL"),
        ("an_old_loss", "an_old_loss"),
    ],
)
def test_a_part_has_a_name_for_people(part: str, label: str) -> None:
    assert part_label(part) == label


@each("loss", LOSSES)
def test_the_terms_of_one_loss_have_colours_of_their_own(loss: str) -> None:
    colours = [part_colour(loss), *(part_colour(f"{loss}_{number}") for number in range(2, 9))]
    assert len(set(colours)) == 8
    assert part_colour(f"{loss}.piece") == colours[0]


def test_no_colour_means_two_things() -> None:
    assert len({part_colour(f"{loss}_2") for loss in LOSSES}) == len(LOSSES)
    colours = [*(entry.colour for entry in LOSSES.values()), ACCENT, QUIET, *MORE_COLOURS]
    assert len(set(colours)) == len(colours)
