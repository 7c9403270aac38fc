"""A selection of examples, and what a map is zoomed to, as short texts in the address."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

# Longer lists of ranges are written as bits instead.
LONGEST_LIST = 300
BITS = "~"
RANGE, SEPARATOR = "-", "."


def ids_as_text(ids: Iterable[int]) -> str:
    """Ids from 0 up, such as `3.7-12`; many scattered ones as compressed bits."""
    ordered = sorted(set(ids))
    if not ordered:
        return ""
    listed = SEPARATOR.join(f"{a}{RANGE}{b}" if b > a else str(a) for a, b in _ranges(ordered))
    if len(listed) <= LONGEST_LIST:
        return listed
    bits = bytearray(ordered[-1] // 8 + 1)
    for number in ordered:
        bits[number // 8] |= 1 << number % 8
    return BITS + base64.urlsafe_b64encode(zlib.compress(bytes(bits), 9)).decode().rstrip("=")


def ids_from_text(text: str, known: Collection[int]) -> tuple[int, ...]:
    """The known ids that a text names, ascending; none where it is no such text."""
    try:
        wanted = _from_bits(text[1:], max(known, default=0)) if text.startswith(BITS) else _from_list(text, len(known))
    except (ValueError, binascii.Error, zlib.error):
        return ()
    return tuple(sorted(wanted & set(known)))


def camera_from_text(text: str) -> str | None:
    """The text again where it says what one map is zoomed to, None for nonsense.

    The browser writes it: three numbers (two places and a reach, or two angles and a zoom), the last of them above 0.
    """
    try:
        numbers = [float(part) for part in text.split("_")]
    except ValueError:
        return None
    fits = len(numbers) == 3 and all(map(math.isfinite, numbers)) and numbers[2] > 0
    return text if fits else None


def _ranges(ordered: Sequence[int]) -> list[tuple[int, int]]:
    breaks = [i for i, (a, b) in enumerate(pairwise(ordered), start=1) if b != a + 1]
    return [(ordered[a], ordered[b - 1]) for a, b in pairwise([0, *breaks, len(ordered)])]


def _from_list(text: str, most: int) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(SEPARATOR)):
        first, _, last = part.partition(RANGE)
        start, end = int(first), int(last or first)
        # An address can ask for anything: a range is never longer than what there is.
        found.update(range(start, min(end, start + 2 * most) + 1))
    return found


def _from_bits(text: str, highest: int) -> set[int]:
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    bits = zlib.decompressobj().decompress(packed, highest // 8 + 1)
    return {number for number in range(min(8 * len(bits), highest + 1)) if bits[number // 8] >> number % 8 & 1}
