"""Problems of rows that may stay, within a file or over several: repeated rows, texts with two labels, formulas."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

from core.errors import shown
from core.messages import Message
from core.tasks.files.problems import PROBLEMS, PROBLEMS_LISTED, Alike, Cells, Label, Noticed, Problem, score
from core.tasks.rows import Rows, place_words
from core.tasks.survey import folded

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """The rows of one file, and where each of them begins: which line of it, or which row, as `unit` says."""

    name: str
    unit: str
    rows: Rows
    lines: Sequence[int]

    @property
    def labels(self) -> Sequence[Label]:
        return self.rows.labels if self.rows.kind == "classes" else [score(label) for label in self.rows.labels]

    @property
    def texts(self) -> Iterable[tuple[str, ...]]:
        """The text of each row, or both."""
        columns = [self.rows.texts, *([self.rows.seconds] if self.rows.seconds is not None else [])]
        return zip(*columns, strict=True)

    def cells(self, row: int) -> Cells:
        second = None if self.rows.seconds is None else self.rows.seconds[row]
        return Cells(self.rows.texts[row], second, self.rows.labels[row])

    def having(self, has: Callable[[str], bool]) -> set[int]:
        """The rows with a cell that has something."""
        columns = (self.rows.texts, self.rows.seconds or (), self.rows.labels)
        return {row for column in columns for row, cell in enumerate(column) if has(cell)}


@dataclass(frozen=True, slots=True)
class Noted:
    """Problems of rows of one part that may stay all the same.

    Attributes:
        rows: which of them have a problem, by its kind.
        problems: in words, the first few of each kind.
    """

    rows: dict[str, list[int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def optional_problems(parts: Sequence[NumberedRows]) -> list[Noted]:
    """Repeated rows, texts with two labels and formulas of each part; rows repeat those of all parts above them.

    Texts are the same when they are once `folded`; scores when they are the same number.
    """
    places = _Places([len(part.rows) for part in parts])
    labels = [label for part in parts for label in part.labels]
    repeated = _repeated((_digest(texts) for part in parts for texts in part.texts), labels)
    having = {
        kind.name: {places.number(i, row) for i, part in enumerate(parts) for row in part.having(kind.of_cell)}
        for kind in PROBLEMS.values()
        if kind.of_cell is not None
    }
    noted = [Noted() for _part in parts]
    for at in sorted({*repeated, *chain.from_iterable(having.values())}):
        number, row = places[at]
        alike = Alike(at, labels[at], repeated[at]) if at in repeated else None
        for kind in PROBLEMS.values():
            other = at if at in having.get(kind.name, ()) else None
            if alike is not None and kind.of_texts is not None:
                other = kind.of_texts(alike)
            if other is None or kind.message is None:
                continue
            rows = noted[number].rows.setdefault(kind.name, [])
            rows.append(row)
            if len(rows) <= PROBLEMS_LISTED:
                message = kind.message(_noticed(parts, (number, row), places[other]))
                noted[number].problems.append(Problem(kind.name, parts[number].lines[row], message, parts[number].name))
    return noted


class _Places:
    """The rows of all parts, numbered one after the other."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._starts = [0, *accumulate(lengths)]

    def number(self, part: int, row: int) -> int:
        return self._starts[part] + row

    def __getitem__(self, number: int) -> tuple[int, int]:
        """The part and the row in it."""
        part = bisect_right(self._starts, number) - 1
        return part, number - self._starts[part]


def _noticed(parts: Sequence[NumberedRows], place: tuple[int, int], other_place: tuple[int, int]) -> Noticed:
    """A row, by its part and its place there, beside another one."""
    (part, row), (other_part, other_row) = ((parts[number], row) for number, row in (place, other_place))
    here = place_words(part.unit, part.lines[row], begins=part is other_part)
    there = place_words(other_part.unit, other_part.lines[other_row])
    if part is not other_part:
        # Translators: the line of a file, as the beginning of a sentence: 'test.csv', line 5, repeats …
        here = Message("{file}, {line},", file=shown(part.name), line=here)
        # Translators: line 5 of 'train.csv'.
        there = Message("{line} of {file}", line=there, file=shown(other_part.name))
    return Noticed(here, there, part.cells(row), other_part.cells(other_row))


def _repeated(digests: Iterable[bytes], labels: Sequence[Label]) -> dict[int, dict[Label, int]]:
    """For each row whose texts occur in another row too: the first row with each of their labels."""
    alone: dict[bytes, int] = {}
    groups: dict[bytes, dict[Label, int]] = {}
    repeated: dict[int, dict[Label, int]] = {}
    for row, digest in enumerate(digests):
        first = alone.setdefault(digest, row)
        if first == row:
            continue
        if digest not in groups:
            groups[digest] = repeated[first] = {labels[first]: first}
        groups[digest].setdefault(labels[row], row)
        repeated[row] = groups[digest]
    return repeated


def _digest(texts: tuple[str, ...]) -> bytes:
    """What is equal for rows with the same texts, and short."""
    key = "\n".join(folded(texts))  # no folded text holds a line break
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
