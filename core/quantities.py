"""How numbers are written for people, the same on every page, in every figure and on the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence

# One decimal: on the 120 texts of a map, one text is 0.8 points. Python, and d3 in a figure's hover, read this format.
PERCENT_FORMAT = ".1%"
# An axis writes 50%, and 52.5% where it has to; d3 alone reads this one.
PERCENT_TICKS = ".1~%"
# The cells of a table that a browser sorts and formats; they hold hundredths, as `hundredths` gives them.
PERCENT_CELLS = "%.1f%%"


def percent(share: float) -> str:
    """A share between 0 and 1 as a percentage with one decimal, such as 41.7%; a dash where there is none (NaN)."""
    return "–" if math.isnan(share) else format(share, PERCENT_FORMAT)


def hundredths(shares: Sequence[float | None]) -> list[float | None]:
    """Shares for table cells of the format `PERCENT_CELLS`."""
    return [None if share is None else 100 * share for share in shares]


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 row, 1,080 rows.

    Args:
        many: the plural, `one` with an s by default.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
