"""Detection of a header: a first line that names the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.tasks.files.columns import KNOWN_NAMES, plain_name

HEADER_MAX_CHARS = 60
HEADER_MAX_WORDS = 5
# Numbers with a point or a comma, in groups of three, with a sign, an exponent or a percent sign; dates and times.
# No run of digits can be parted in two ways, which would make long ones slow.
TYPED = re.compile(
    r"""[-+\u2212]?(?:\d++(?:[.,]\d*+)?|[.,]\d++)(?:[eE][-+]?\d++)?%?
      | [-+\u2212]?\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})++(?:[.,]\d++)?%?
      | \d{1,4}([-/.])\d{1,2}\1\d{1,4}\.?(?:[T ,]\ *+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d++)?)?(?:Z|\ ?[-+]\d{2}:?\d{2})?)?
      | \d{1,2}:\d{2}(?::\d{2}(?:[.,]\d++)?)?
    """,
    re.VERBOSE,
)
# How a gap among values is written.
MISSING = frozenset({"", "-", "--", "?", ".", "na", "n/a", "nan", "null", "none", "nil"})


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns: known names, or short words above values of another kind."""
    if len(rows) < 2:
        return bool(rows) and any(plain_name(cell) in KNOWN_NAMES for cell in rows[0])
    first = [cell.strip() for cell in rows[0]]
    below = [[row[i].strip() for row in rows[1:] if len(row) > i] for i in range(len(first))]
    columns = list(zip(first, below, strict=True))
    if any(plain_name(cell) in KNOWN_NAMES and cell not in values for cell, values in columns):
        return True
    if any(TYPED.fullmatch(cell) for cell in first):
        return False
    if any(cell and cell in values for cell, values in columns):
        return False  # a value that comes again is a value
    if any(_above_values(cell, values) for cell, values in columns):
        return True
    short = all(len(cell) <= HEADER_MAX_CHARS and len(cell.split()) <= HEADER_MAX_WORDS for cell in first)
    worded = [values for values in below if not all(map(_is_typed, values))]
    longest = max((sum(map(len, values)) / len(values) for values in worded), default=0.0)
    names = [cell for cell in first if cell]
    return short and len(set(names)) == len(names) and longest > 2 * max(map(len, first))


def _above_values(cell: str, values: Sequence[str]) -> bool:
    """Return whether a cell that is no number or date is above nothing but such, gaps aside.

    A gap is no name, so that an empty cell counts only above the numbers of rows.
    """
    if cell.casefold() in MISSING:
        return bool(values) and values in (_numbers_from(0, values), _numbers_from(1, values))
    return not all(value.casefold() in MISSING for value in values) and all(map(_is_typed, values))


def _is_typed(value: str) -> bool:
    """Return whether a value is a number, a date or a gap."""
    return TYPED.fullmatch(value) is not None or value.casefold() in MISSING


def _numbers_from(start: int, values: Sequence[str]) -> list[str]:
    return [str(number) for number in range(start, start + len(values))]
