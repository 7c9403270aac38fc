"""Words that several views of a comparison share."""

from __future__ import annotations

from collections.abc import Sequence

from core.messages import _


def group_name(names: Sequence[str]) -> str:
    """What runs that differ in the seed only are called together, by their names: a, or a and 2 more."""
    first, more = names[0], len(names) - 1
    return _("{first} and {more} more", first=first, more=more) if more else first
