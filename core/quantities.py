"""Number formats, the same on every page, in every figure and on the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from core.messages import ENGLISH, language

# One decimal: with 120 texts on a map, one text is 0.8 points. d3 uses this format in a figure's hover.
PERCENT_FORMAT = ".1%"
# An axis shows 50%, and 52.5% where necessary; only d3 uses this format.
PERCENT_TICKS = ".1~%"
# Format of percentages in a table that a browser sorts; the cells hold the values of `hundredths`.
PERCENT_CELLS = "%.1f%%"
# Digits beyond these are errors of summation.
EXACT_DECIMALS = 9
# From here on a float is a whole number, which has no half to round.
WHOLE = 2.0**53


def percent(share: float) -> str:
    """Format a share between 0 and 1 as a percentage with one decimal, such as 41.7%; NaN is a dash.

    Halves are rounded up, as browsers do in tables and hovers: 325 correct of 400 are 81.3% everywhere.
    """
    if math.isnan(share):
        return "–"
    return f"{_rounded(100 * float(share), 1)}%"


def _rounded(value: float, decimals: int) -> str:
    """Round halves away from zero, whatever the last bits of a sum: 0.8225 is 82.3% in any order of summation."""
    if not abs(value) < WHOLE:  # also NaN
        return f"{value:.{decimals}f}"
    return str(Decimal(repr(round(value, EXACT_DECIMALS))).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


def signed(value: float, decimals: int) -> str:
    """Format a number, with a minus sign if it is negative; a number that rounds to 0 has none."""
    text = _rounded(float(value), decimals)
    return text.replace("-", "−" if float(text) else "")


def hundredths(shares: Sequence[float | None]) -> list[float | None]:
    """Multiply shares by 100, for table cells in the format `PERCENT_CELLS`."""
    return [None if share is None else 100 * share for share in shares]


def day_text(moment: float, *, short: bool = False) -> str:
    """Format the local date of a moment: 7 March 2026, or 7 Mar 2026 if `short`.

    Args:
        moment: in seconds since the epoch.
    """
    day = datetime.fromtimestamp(moment)
    if language() == ENGLISH:
        return f"{day.day} {day:{'%b' if short else '%B'}} {day.year}"
    from babel.dates import format_date  # not needed for English

    return format_date(day, "medium" if short else "long", locale=language())
