"""Easy data augmentation: a view of a text with some of its words replaced, deleted, duplicated or swapped.

Source: Wei & Zou 2019, arXiv:1901.11196. Differences from its code:

- A text keeps its case and punctuation.
- A word is replaced at the drawn position, not wherever it occurs.
- A rate is a share of the words. The original deletes each word with a probability, and swaps rate · words times, which
  moves twice as many.
- Words are duplicated in place. The original inserts synonyms of other words.
- Texts without spaces are changed by character.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import Generator

from core.catalogue.loss_entry import Settings
from core.parameters import number
from core.texts.segments import UNSPACED_UNIT, is_unspaced

# Function words carry the grammar, and changing some of them inverts the meaning of a sentence.
FUNCTION_WORDS = """
    a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself yourselves he
    him his himself she her hers herself it its itself they them their theirs themselves who whom whose which what when
    where why how am is are was were be been being have has had having do does did doing done will would shall should
    can could may might must ought and or but nor so yet if because as until while although though than then of at by
    for with without about against between into through during before after above below to from up down in out on off
    over under again further once here there all any both each few more most other some such no not only own same too
    very just also even ever never none nothing nobody neither cannot don't doesn't didn't won't wouldn't can't couldn't
    shouldn't isn't aren't wasn't weren't haven't hasn't hadn't i'm i've i'd i'll you're you've you'd you'll he's she's
    it's we're we've we'd we'll they're they've they'd they'll that's there's what's who's let's
"""
STOP_WORDS = frozenset(FUNCTION_WORDS.split())

# Separates these draws from the project's other generators, whose seeds are shorter lists.
STREAM = 6

SYNONYMS = Path(__file__).resolve().parents[2] / "assets" / "synonyms.txt"
PUNCTUATED = re.compile(r"(\W*)(.*?)(\W*)", re.DOTALL)


def row_generator(seed: int, step: int, row: int, draw: int) -> Generator:
    """Return the generator of one view, so that a resumed run draws the same views as an uninterrupted one.

    Args:
        seed: seed of the run, ≥ 0.
        step: training step, ≥ 0.
        row: row of the training split, ≥ 0.
        draw: number of the view in its step, ≥ 0.
    """
    return np.random.default_rng([seed, step, row, draw, STREAM])


def stream(*names: str) -> int:
    """Return the number of a view's or operation's random stream, so that they do not all choose the same words."""
    return zlib.crc32(":".join(names).encode())


def eda(text: str, *, operation: str = "mixed", rate: float, rng: Generator) -> str:
    """Return a view of a text: a pure function of the text, the operation, the rate and the generator's state.

    A word is the text between white space. If more than half of the letters are of a script without spaces, a word is a
    character with its marks, or a run of Latin letters and digits. A changed text has single spaces.

    Args:
        operation: "replace" words by synonyms, "delete" words, "duplicate" words in place, "swap" pairs of words, or
            "mixed": one of the four, drawn from those that can change this text.
        rate: share of the words that change, in [0, 1]. Above 0 at least one changes, if the text allows it. Deletion
            leaves at least one word. Stop words and words without a synonym are never replaced.
    Returns: the text itself if nothing can be changed.
    Raises: ValueError for an unknown operation or a rate outside [0, 1].
    """
    if operation not in (*CHANGES, "mixed"):
        raise ValueError(f"operation = {operation!r}: choose one of {', '.join(CHANGES)}, mixed.")
    if not 0 <= rate <= 1:
        raise ValueError(f"rate = {rate}: give a share of the words from 0 to 1.")
    if rate == 0:
        return text
    words, joint = split_words(text)
    names = [list(CHANGES)[i] for i in rng.permutation(len(CHANGES))] if operation == "mixed" else [operation]
    for name in names:
        changed = CHANGES[name](words, rate, rng)
        if changed != words:
            return joint.join(changed).strip()
    return text


def split_words(text: str) -> tuple[list[str], str]:
    """Split a text into words. Returns: the words and their separator."""
    if not is_unspaced(text):
        return text.split(), " "
    units: list[str] = []
    for unit in UNSPACED_UNIT.findall(text.strip()):
        if units and (unit.isspace() or unicodedata.category(unit[0]).startswith("M")):
            units[-1] += unit  # a vowel sign, a tone mark or white space stays with its letter
        else:
            units.append(unit)
    return units, ""


def read_synonyms() -> list[tuple[str, ...]]:
    """Read the bundled list: one group a line, its words separated by spaces; lines that begin with # are comments."""
    lines = SYNONYMS.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split()) for line in lines if line.strip() and not line.startswith("#")]


@cache
def _bundled_synonyms() -> dict[str, list[str]]:
    others: dict[str, set[str]] = {}
    for group in read_synonyms():
        for word in group:
            others.setdefault(word, set()).update(group)
    return {word: sorted(found - {word}) for word, found in others.items()}


def synonyms(word: str) -> list[str]:
    """Return words that can replace a lower-case word, sorted and without the word.

    The list has words in the inflected forms of a text ("films", "enjoyed"). The code of Wei & Zou 2019 takes
    dictionary forms from WordNet, for any of the word's meanings.
    """
    return _bundled_synonyms().get(word, [])


def _count(rate: float, words: int) -> int:
    return max(1, round(rate * words))


def _replace(words: list[str], rate: float, rng: Generator) -> list[str]:
    known = {i: found for i, word in enumerate(words) if (found := _replacements(word))}
    places = rng.permutation(list(known))[: _count(rate, len(words))]
    changed = list(words)
    for place in places:
        found = known[int(place)]
        changed[place] = found[int(rng.integers(len(found)))]
    return changed


def _replacements(word: str) -> list[str]:
    """Return synonyms of a word with its punctuation and capitals."""
    parts = PUNCTUATED.fullmatch(word)
    assert parts is not None
    before, core, after = parts.groups()
    if not core or core.lower() in STOP_WORDS:
        return []
    found = [before + _capitalised_as(core, other) + after for other in synonyms(core.lower())]
    return [other for other in found if other != word]


def _capitalised_as(word: str, other: str) -> str:
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[0].isupper() else other


def _delete(words: list[str], rate: float, rng: Generator) -> list[str]:
    count = min(_count(rate, len(words)), len(words) - 1)
    gone = set(rng.permutation(len(words))[: max(0, count)].tolist())
    return [word for i, word in enumerate(words) if i not in gone]


def _duplicate(words: list[str], rate: float, rng: Generator) -> list[str]:
    twice = set(rng.permutation(len(words))[: _count(rate, len(words))].tolist())
    return [copy for i, word in enumerate(words) for copy in [word] * (2 if i in twice else 1)]


def _swap(words: list[str], rate: float, rng: Generator) -> list[str]:
    """Swap pairs of different words, no word twice, so that no swap undoes another."""
    changed = list(words)
    free = rng.permutation(len(words)).tolist()
    for _pair in range(_count(rate / 2, len(words))):
        if not free:
            break
        first = free.pop()
        second = next((i for i in free if words[i] != words[first]), None)
        if second is not None:
            free.remove(second)
            changed[first], changed[second] = changed[second], changed[first]
    return changed


CHANGES: dict[str, Callable[[list[str], float, Generator], list[str]]] = {
    "replace": _replace,
    "delete": _delete,
    "duplicate": _duplicate,
    "swap": _swap,
}


def eda_view(text: str, settings: Settings, rng: Generator) -> str:
    return eda(text, operation=str(settings["operation"]), rate=number(settings, "rate"), rng=rng)
