"""Words that can replace a word, from a bundled list of English words."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

BUNDLED_LIST = Path(__file__).resolve().parents[2] / "assets" / "synonyms.txt"


def synonyms(word: str) -> tuple[str, ...]:
    """Return words that can replace a word, sorted, lower-case and without the word; () if none are known.

    The list has words in the inflected forms of a text ("films", "enjoyed"). The code of Wei & Zou 2019
    (arXiv:1901.11196) takes dictionary forms from WordNet, for any of the word's meanings.

    Args:
        word: one word, in any case.
    """
    return _bundled().get(word.lower(), ())


def read_groups() -> list[tuple[str, ...]]:
    """Read the bundled list: one group a line, its words separated by spaces; lines that begin with # are comments."""
    lines = BUNDLED_LIST.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split()) for line in lines if line.strip() and not line.startswith("#")]


@lru_cache(maxsize=1)
def _bundled() -> dict[str, tuple[str, ...]]:
    others: dict[str, set[str]] = {}
    for group in read_groups():
        for word in group:
            others.setdefault(word, set()).update(group)
    return {word: tuple(sorted(found - {word})) for word, found in others.items()}
