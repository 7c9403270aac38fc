"""Segments of a view's text, which mark its changes for display."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, NamedTuple

Mark = Literal["same", "changed", "removed", "added", "moved"]

# A word with the white space around it.
WORD = re.compile(r"\s*\S+\s*|\s+")
# Han, kana, Thai, Lao, Khmer and Burmese are written without spaces, Korean with spaces.
UNSPACED_LETTER = re.compile(
    "[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003134f]"
)
UNSPACED_UNIT = re.compile(r"[A-Za-z0-9]+|.", re.DOTALL)
# Beyond this many pairs of words, comparing two texts takes seconds, so only their ends are compared.
MOST_COMPARED = 4_000_000
# Special tokens of the supported families' tokenizers; they keep their positions.
SPECIAL_TOKENS = frozenset(["[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>"])


class Segment(NamedTuple):
    """A piece of a view's text, or one of its tokens, with the kind of its change."""

    text: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class ViewPreview:
    """Preview of one view of a text, or of one operation of the view.

    Attributes:
        name: name of the view in the registry.
        label: label of the view, with the operation if it has several; translated, like the sentence.
        unit: kind of the segments: pieces of text to join, or single tokens. None if there is only the sentence.
        segments: one sequence per text; the tokens of a pair are one sequence. Without the segments marked "removed"
            they are exactly the view. A removed token is one whose embedding is zeroed.
        sentence: the effect of the view, for display.
        on_request: True if a model must compute the view first.
    """

    name: str
    label: str
    sentence: str
    unit: Literal["text", "tokens"] | None = None
    segments: tuple[tuple[Segment, ...], ...] = ()
    on_request: bool = False

    @property
    def changed(self) -> bool:
        """True if any segment shows a change."""
        return any(segment.mark != "same" for text in self.segments for segment in text)


class Subject(NamedTuple):
    """The text to preview: one text or a pair, with its tokens if they are known."""

    texts: tuple[str, ...]
    tokens: tuple[str, ...] | None
    seed: int
    rate: float

    @property
    def movable(self) -> list[int]:
        """Positions of the tokens that a view may change."""
        return [place for place, token in enumerate(self.tokens or ()) if token not in SPECIAL_TOKENS]


def segments_of(before: str, after: str) -> tuple[Segment, ...]:
    """Split a view's text into segments that mark the changes to the words of the original.

    Segments that are not marked "removed" join to `after`. Texts without spaces are compared by character.
    """
    if before == after:
        return (Segment(after, "same"),) if after else ()
    unspaced = is_unspaced(before)
    unit = UNSPACED_UNIT if unspaced else WORD
    old, new = unit.findall(before), unit.findall(after)  # joined, they are the texts
    old_words, new_words = ([one.strip() or one for one in units] for units in (old, new))
    matches = _matches(old_words, new_words)
    # A word that is removed at one position and added at another has moved; it is shown at the new one.
    kept_old, kept_new = {i for i, _ in matches}, {j for _, j in matches}
    gone = Counter(word for i, word in enumerate(old_words) if i not in kept_old)
    come = Counter(word for j, word in enumerate(new_words) if j not in kept_new)
    moved = gone & come
    unseen = Counter(moved)
    pieces: list[Segment] = []
    i = j = 0
    for next_i, next_j in [*matches, (len(old), len(new))]:
        removed = []
        for place in range(i, next_i):
            if unseen[old_words[place]] > 0:
                unseen[old_words[place]] -= 1
            else:
                removed.append(old[place] if unspaced else f"{old_words[place]} ")
        if removed and pieces and not unspaced and not pieces[-1].text[-1].isspace():
            removed.insert(0, " ")
        pieces += [Segment(piece, "removed") for piece in removed]
        for place in range(j, next_j):
            if moved[new_words[place]] > 0:
                moved[new_words[place]] -= 1
                pieces.append(Segment(new[place], "moved"))
            else:
                pieces.append(Segment(new[place], "changed" if removed else "added"))
        if next_j < len(new):
            pieces.append(Segment(new[next_j], "same"))
        i, j = next_i + 1, next_j + 1
    runs = groupby(pieces, key=lambda piece: piece.mark)
    return tuple(Segment("".join(piece.text for piece in run), mark) for mark, run in runs)


def is_unspaced(text: str) -> bool:
    """Return whether more than half of the letters are of a script without spaces."""
    return 2 * len(UNSPACED_LETTER.findall(text)) > sum(map(str.isalpha, text))


def _matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return positions (in old, in new) of unchanged words, both ascending.

    The result is exact if words were only deleted or only added.
    """
    if (found := _places(new, old)) is not None:
        return [(i, j) for j, i in enumerate(found)]
    if (found := _places(old, new)) is not None:
        return list(enumerate(found))
    in_place = [(i, i) for i, (one, other) in enumerate(zip(old, new, strict=False)) if one == other]
    same_length = len(old) == len(new)
    if same_length and (2 * len(in_place) >= len(old) or Counter(old) == Counter(new)):
        return in_place
    if len(old) * len(new) > MOST_COMPARED:
        # Match the words at the common beginning and at the common end.
        shorter = min(len(old), len(new))
        first = next((k for k in range(shorter) if old[k] != new[k]), shorter)
        last = next((k for k in range(shorter - first) if old[-1 - k] != new[-1 - k]), shorter - first)
        ends = ((len(old) - k, len(new) - k) for k in range(last, 0, -1))
        return [*((k, k) for k in range(first)), *ends]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]


def _places(part: Sequence[str], whole: Sequence[str]) -> list[int] | None:
    """Return the positions of the words of `part` in `whole`, in order; None if `part` is not a subsequence of it."""
    places: list[int] = []
    rest = iter(enumerate(whole))
    for word in part:
        place = next((i for i, other in rest if other == word), None)
        if place is None:
            return None
        places.append(place)
    return places
