"""Problems of rows that may stay, within a file or over several: repeated rows, texts with two labels, formulas."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from core.errors import shown
from core.tasks.files.problems import PROBLEMS_LISTED, Problem, is_formula, score
from core.tasks.rows import Rows
from core.tasks.survey import folded

DIGEST_BYTES = 16
# A class, or a similarity as a number.
Label = str | float | None


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

    @property
    def formulas(self) -> set[int]:
        """The rows with a cell that is one."""
        cells = (self.rows.texts, self.rows.seconds or (), self.rows.labels)
        return {row for column in cells for row, cell in enumerate(column) if is_formula(cell)}


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
    formulas = [part.formulas for part in parts]
    noted = [Noted() for _ in parts]
    for at in sorted({*repeated, *(places.number(part, row) for part, rows in enumerate(formulas) for row in rows)}):
        number, row = places[at]
        others: dict[str, int] = {}  # by kind of problem, the row that this one is compared with
        if (by_label := repeated.get(at)) is not None:
            if by_label[labels[at]] != at:
                others["duplicate"] = by_label[labels[at]]
            if len(by_label) > 1:
                others["two_labels"] = next(other for label, other in by_label.items() if label != labels[at])
        if row in formulas[number]:
            others["formula"] = at
        for kind, other in others.items():
            having = noted[number].rows.setdefault(kind, [])
            having.append(row)
            if len(having) <= PROBLEMS_LISTED:
                noted[number].problems.append(_problem(kind, parts, (number, row), places[other]))
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


def _problem(kind: str, parts: Sequence[NumberedRows], place: tuple[int, int], other_place: tuple[int, int]) -> Problem:
    """What is said of a row, by its part and its place there, compared with another one."""
    (part, row), (other_part, other_row) = ((parts[number], row) for number, row in (place, other_place))
    message = _message(kind, part, row, other_part, other_row)
    return Problem(kind, part.lines[row], message, part.name)


def _message(kind: str, part: NumberedRows, row: int, other_part: NumberedRows, other_row: int) -> str:
    here, there = f"{part.unit} {part.lines[row]:,}", f"{other_part.unit} {other_part.lines[other_row]:,}"
    if part is other_part:
        here = here.capitalize()
    else:
        here, there = f"{shown(part.name)}, {here},", f"{there} of {shown(other_part.name)}"
    text, label = shown(part.rows.texts[row]), shown(part.rows.labels[row])
    if kind == "duplicate":
        return f"{here} repeats {there}: {text}."
    if kind == "two_labels":
        other = shown(other_part.rows.labels[other_row])
        return f"{here} has the label {label} and {there} has {other} for the same text: {text}."
    cells = (part.rows.texts[row], *([part.rows.seconds[row]] if part.rows.seconds else []), part.rows.labels[row])
    return f"{here} has a cell that a spreadsheet would run: {shown(next(filter(is_formula, cells)))}."


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
