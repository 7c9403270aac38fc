"""Where a row is and what is wrong with it, in the words that messages are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.messages import N_, _

# What is wrong with a row: given where it is, a clause without a full stop, in the language that is spoken then.
Saying = Callable[[str], str]

# By what a row's number counts, and by whether a sentence begins with it.
PLACES: Mapping[tuple[str, bool], str] = {
    ("line", True): N_("Line {number:,}"),
    ("line", False): N_("line {number:,}"),
    ("row", True): N_("Row {number:,}"),
    ("row", False): N_("row {number:,}"),
}


def place_words(unit: str, number: int, *, begins: bool = False) -> str:
    """Where a row begins: line 1,204.

    Args:
        unit: "line", or "row" where a file has no lines.
        begins: whether a sentence begins with it.
    """
    return _(PLACES[unit, begins], number=number)


def sentence(clause: str) -> str:
    # Translators: a clause, such as one on what is wrong with a row, with the full stop that ends a sentence.
    return _("{clause}.", clause=clause)
