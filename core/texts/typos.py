"""Typing errors: letters within words are swapped, dropped or doubled."""

from __future__ import annotations

from numpy.random import Generator

from core.texts.eda import split_words

# A shorter word has no two inner letters.
SHORTEST = 4


def typos(text: str, *, rate: float, rng: Generator) -> str:
    """Return a text with one typing error in a share of its words, which keep their first and their last character.

    Texts of scripts without spaces are returned unchanged.

    Args:
        rate: share of the words of four or more characters that change, in [0, 1]; above 0 at least one.
    Source: Pruthi et al. 2019, arXiv:1905.11268, without its errors of neighbouring keys.
    """
    words, joint = split_words(text)
    long = [place for place, word in enumerate(words) if len(word) >= SHORTEST] if joint else []
    if not long or rate == 0:
        return text
    for place in rng.permutation(long)[: max(1, round(rate * len(long)))].tolist():
        words[place] = _misspell(words[place], rng)
    return joint.join(words)


def _misspell(word: str, rng: Generator) -> str:
    """Swap two inner letters, drop one or double one. A swap of equal letters is a doubling instead."""
    kind, place = int(rng.integers(3)), int(rng.integers(1, len(word) - 2))
    first, second = word[place], word[place + 1]
    if kind == 0 and first != second:
        return word[:place] + second + first + word[place + 2 :]
    return word[:place] + ("" if kind == 1 else first + first) + word[place + 1 :]
