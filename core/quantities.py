"""How numbers are written for people, the same on every page, in every figure and on the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from core.messages import ENGLISH, language

# One decimal: on the 120 texts of a map, one text is 0.8 points. d3 reads this format in a figure's hover.
PERCENT_FORMAT = ".1%"
# An axis writes 50%, and 52.5% where it has to; d3 alone reads this one.
PERCENT_TICKS = ".1~%"
# The cells of a table that a browser sorts and formats; they hold hundredths, as `hundredths` gives them.
PERCENT_CELLS = "%.1f%%"


def percent(share: float) -> str:
    """A share between 0 and 1 as a percentage with one decimal, such as 41.7%; a dash where there is none (NaN).

    Halves are rounded up, as browsers do in tables and hovers: 325 right of 400 are 81.3% everywhere.
    """
    if math.isnan(share):
        return "–"
    return f"{Decimal(100 * float(share)).quantize(Decimal('0.1'), ROUND_HALF_UP)}%"


def signed(value: float, decimals: int) -> str:
    """A number that may lie below 0, with a minus sign; what is rounded to 0 has none."""
    text = f"{value:.{decimals}f}"
    return text.replace("-", "−" if float(text) else "")


def hundredths(shares: Sequence[float | None]) -> list[float | None]:
    """Shares for table cells of the format `PERCENT_CELLS`."""
    return [None if share is None else 100 * share for share in shares]


def day_text(moment: float, *, short: bool = False) -> str:
    """A day of this machine's calendar: 7 March 2026, or 7 Mar 2026. Args: moment: in seconds since the epoch."""
    day = datetime.fromtimestamp(moment)
    if language() == ENGLISH:
        return f"{day.day} {day:{'%b' if short else '%B'}} {day.year}"
    from babel.dates import format_date  # what English alone does without

    return format_date(day, "medium" if short else "long", locale=language())
