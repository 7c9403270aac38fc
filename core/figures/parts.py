"""Names, colours and dashes of an objective's parts: its terms, their pieces and their reference levels."""

from __future__ import annotations

from core.catalogue.losses import LOSSES
from core.events import OfTerm
from core.messages import N_, _

# Colours of the second, third, … term of one loss.
MORE_COLOURS = (
    "#b3a369",
    "#7a6fac",
    "#5f9e6e",
    "#a65e4e",
    "#4a8fa8",
    "#8c6d46",
    "#9b9b3d",
    "#b56d8f",
    "#5b7f3a",
    "#6d7f99",
)
# Dashes of the pieces of a loss, in order.
PIECE_DASHES = ("dashdot", "longdash", "dash", "dot")
# Reference levels of a term's loss: name, label at the end of the line if there is one term, and dash.
REFERENCES = {
    OfTerm.COLLAPSE_LINE: (N_("{part} collapse line"), N_("collapse line"), "dash"),
    OfTerm.LOWER_BOUND: (N_("{part} lower bound"), N_("lower bound"), "dot"),
}


def part_label(part: str) -> str:
    """Return the display name of a part: `supcon_2` is "SCL 2"; `rdrop.kl` is R-Drop's KL."""
    loss, number, piece = _split(part)
    symbol, pieces = (LOSSES[loss].symbol, LOSSES[loss].pieces) if loss in LOSSES else (loss, {})
    said = f"{_(symbol)} {number}" if number > 1 else _(symbol)
    return _("{name}, {detail}", name=said, detail=_(pieces.get(piece, piece))) if piece else said


def part_dash(part: str) -> str:
    """Return the dash of a part's line: solid for a term, dashed for a piece of a term."""
    loss, _number, piece = _split(part)
    if not piece:
        return "solid"
    places = list(LOSSES[loss].pieces) if loss in LOSSES else []
    return PIECE_DASHES[places.index(piece) % len(PIECE_DASHES) if piece in places else 0]


def part_colour(part: str) -> str:
    loss, number, _piece = _split(part)
    if number == 1 and loss in LOSSES:
        return LOSSES[loss].colour
    place = list(LOSSES).index(loss) if loss in LOSSES else 0
    return MORE_COLOURS[(place + number) % len(MORE_COLOURS)]


def _split(part: str) -> tuple[str, int, str]:
    """Split a part into its loss, the number of its term among the terms of that loss, and its piece ("" if none)."""
    key, _dot, piece = part.partition(".")
    loss, _line, number = key.rpartition("_")
    return (loss, int(number), piece) if number.isdecimal() else (key, 1, piece)
