"""Survey of a task's texts: lengths, duplicates, script and search.

Results are not cached. Each function takes about a second for 200,000 short rows, except the words of Chinese: six.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from core.texts.eda import split_words

# One text, a pair or a triplet.
Texts = str | tuple[str, ...]
Language = Literal["latin", "zh", "ko", "ja", "other"]

# A Han or kana character counts as much as a word of an alphabet, because it carries about as much meaning.
SCRIPT_UNITS = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"),
    "kana": re.compile("[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d]"),
    "hangul": re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+"),
    "latin": re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+"),
}
LETTERS = re.compile(r"[^\W\d_]+")
# Chinese texts contain an occasional の; Japanese texts have kana in every phrase.
KANA_SHARE = 0.1
SAMPLED_ROWS = 500
SAMPLED_CHARS = 500

QUERY_PART = re.compile(r'"([^"]*)"|([^\s"]+)')
QUOTES = str.maketrans(dict.fromkeys("“”„‟«»「」『』", '"'))

# The limit of Unicode's stream-safe text format (UAX #15). No letter of any language has more.
MARKS_MAX = 30
# Range of all combining marks, and range of the characters that `re` cannot match with a fast bitmap.
MARKS = (0x300, 0x1F000)
ASTRAL = "\U00010000-\U0010ffff"
# Texts up to this length are folded quickly, whatever they contain.
SHORT_CHARS = 128


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Rows with the same text, ascending, and whether their labels differ."""

    rows: tuple[int, ...]
    labels_differ: bool


def word_counts(texts: Sequence[Texts]) -> list[int]:
    """Return the number of words of each text; for a pair, of both texts.

    Words are separated by white space. If more than half of the letters belong to a script without spaces, a word is a
    character with its marks, or a run of Latin letters and digits.
    """
    sides = ((text,) if isinstance(text, str) else text for text in texts)
    return [sum(len(split_words(side)[0]) for side in of_row) for of_row in sides]


def folded(text: Texts) -> Texts:
    """Normalise a text for comparison: Unicode NFKC, case-folded, single spaces. A pair is normalised text by text."""
    return _folded(text) if isinstance(text, str) else tuple(map(_folded, text))


def _folded(text: str) -> str:
    if text.isascii():
        return " ".join(text.lower().split())
    if len(text) > SHORT_CHARS:  # normalising takes quadratic time in a run of combining marks
        suspect, many = _mark_runs()
        text = many.sub(r"\1", text) if suspect.search(text) else text
    # Case folding may undo NFKC, so NFKC is applied again, as in Unicode's NFKC_Casefold.
    again = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(again.split())


@cache
def _mark_runs() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a fast pattern that matches every text with too many marks in a row, and the exact pattern."""
    marks = [c for c in map(chr, range(*MARKS)) if unicodedata.combining(unicodedata.normalize("NFKD", c)[0])]
    suspect = "".join(c for c in marks if c < ASTRAL[0]) + ASTRAL
    exact = "".join(marks)
    return re.compile(f"[{suspect}][{suspect}]{{{MARKS_MAX}}}"), re.compile(f"([{exact}]{{{MARKS_MAX}}})[{exact}]+")


def duplicates(texts: Sequence[Texts], labels: Sequence[int]) -> list[DuplicateGroup]:
    """Find rows whose texts are equal once `folded`, in the order of their first rows.

    Pairs are equal if their first texts are equal and their second texts are equal.
    """
    rows: defaultdict[Texts, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        rows[folded(text)].append(row)
    return [
        DuplicateGroup(tuple(same), len({labels[row] for row in same}) > 1) for same in rows.values() if len(same) > 1
    ]


def language_of(texts: Sequence[Texts]) -> Language:
    """Return the script of most of the texts, as a language; "latin" stands for many languages.

    Only the beginnings of some rows, evenly spread, are read. Han characters with kana are Japanese, without kana
    Chinese.
    """
    places = np.unique(np.linspace(0, max(0, len(texts) - 1), min(SAMPLED_ROWS, len(texts))).round().astype(int))
    sample = (texts[place] for place in places.tolist())
    sides = (side for text in sample for side in ((text,) if isinstance(text, str) else text))
    joined = unicodedata.normalize("NFC", "\n".join(side[:SAMPLED_CHARS] for side in sides))
    units = {script: len(pattern.findall(joined)) for script, pattern in SCRIPT_UNITS.items()}
    for pattern in SCRIPT_UNITS.values():
        joined = pattern.sub(" ", joined)
    characters = units["han"] + units["kana"]
    counts: dict[Language, int] = {
        "latin": units["latin"],
        "ko": units["hangul"],
        "ja" if units["kana"] > KANA_SHARE * characters else "zh": characters,
        "other": len(LETTERS.findall(joined)),
    }
    most = max(counts, key=counts.__getitem__)
    return most if counts[most] else "other"


def search(
    texts: Sequence[Texts],
    words: str = "",
    *,
    labels: Sequence[int] = (),
    splits: Sequence[str] = (),
    in_labels: Collection[int] | None = None,
    in_splits: Collection[str] | None = None,
) -> list[int]:
    """Find the texts that contain every word of a search. A search without words finds all rows.

    A word may be part of a longer one, and the two texts of a pair may contain different words of the search. Case,
    kinds of white space and Unicode's compatible forms make no difference. Quotation marks hold a phrase together; an
    unclosed one is ignored.

    Args:
        labels, splits: label and split of each row, needed only by the filters.
        in_labels, in_splits: allowed values; None allows all.
    Returns: row numbers, ascending.
    """
    rows: Sequence[int] = range(len(texts))
    if in_labels is not None:
        rows = [row for row in rows if labels[row] in in_labels]
    if in_splits is not None:
        rows = [row for row in rows if splits[row] in in_splits]
    parts = QUERY_PART.findall(_folded(words.translate(QUOTES)))
    wanted = [part for phrase, word in parts if (part := (phrase or word).strip())]
    if not wanted:
        return list(rows)
    found = []
    for row in rows:
        text = texts[row]
        # No part of a search holds a line break, so none matches across the two texts of a pair.
        joined = _folded(text) if isinstance(text, str) else "\n".join(map(_folded, text))
        if all(part in joined for part in wanted):
            found.append(row)
    return found
