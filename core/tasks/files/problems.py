"""What may be wrong with a row, in words for people; which rows have to go, and which may stay."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.config import ReadingConfig
from core.errors import ConfigError, shown
from core.messages import N_, Message
from core.tasks.files.columns import NUMBER, SPLITS

PROBLEMS_LISTED = 10_000
TEXT_TOO_LONG = N_("{where} has a text of {chars:,} characters and at most {most:,} are read: {begins}")
LABEL_TOO_LONG = N_("{where} has a label of {chars:,} characters and at most {most:,} are read: {begins}")


# A class, or a similarity as a number.
Label = str | float | None


def check_drop(kinds: Iterable[str]) -> None:
    """Raises: ConfigError for a kind of problem that does not exist."""
    for kind in kinds:
        if kind not in PROBLEMS:
            raise ConfigError("drop", kind, "choose from {names}.", names=tuple(PROBLEMS))


class Cells(NamedTuple):
    """What a message quotes of a row."""

    text: str
    second: str | None
    label: str


class Rules(NamedTuple):
    """What cells are measured by: which column holds what, and how many characters are read."""

    mapping: ReadingConfig
    text_max: int
    label_max: int


# A row's text, second text, label and split, without white space around them; None for a column that there is not. What
# is wrong with the row, whose place `where` is filled later; None where nothing is.
Check = Callable[[str, str | None, str, str | None], Message | None]


class Alike(NamedTuple):
    """A row among those with the same texts: its number and label, and the first row with each label."""

    row: int
    label: Label
    first_of: Mapping[Label, int]


class Noticed(NamedTuple):
    """A row that has a problem with another one: where both are, in words, and their cells."""

    here: Message
    there: Message
    cells: Cells
    other: Cells


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """Something that may be wrong with a row.

    Attributes:
        label: what a list of counts calls it; like `sentence` it is translated where it is shown.
        must_drop: rows like this cannot be learned from; where False, people choose.
        sentence: what it means, and why it matters.
        check: for rows that have to go, the check by some rules; None where these have nothing to check.
        of_cell: of a row that may stay, whether a cell of it has the problem.
        of_texts: of a row that may stay, which of the rows with the same texts it has the problem with, if any.
        message: of a row that may stay, the whole sentence.
    """

    name: str
    label: str
    must_drop: bool
    sentence: str
    check: Callable[[Rules], Check | None] | None = None
    of_cell: Callable[[str], bool] | None = None
    of_texts: Callable[[Alike], int | None] | None = None
    message: Callable[[Noticed], Message] | None = None


class Problem(NamedTuple):
    """One problem of one row; `line` is where its row begins, as people count lines (or rows, in a Parquet file)."""

    kind: str
    line: int
    message: Message
    file: str


def fewer(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """At most 10,000 of many problems, in their order: some of every kind, then those that drop rows, then others."""
    seen: Counter[str] = Counter()
    ranks: list[int] = []
    for problem in problems:
        among_first = seen[problem.kind] < PROBLEMS_LISTED // len(PROBLEMS)
        ranks.append(0 if among_first else 1 if PROBLEMS[problem.kind].must_drop else 2)
        seen[problem.kind] += 1
    chosen = sorted(range(len(problems)), key=ranks.__getitem__)[:PROBLEMS_LISTED]
    return tuple(problems[i] for i in sorted(chosen))


def score(text: str) -> float | None:
    """A finite number as it is written; None for anything else."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# Some spreadsheets take the wide forms of East Asian keyboards for the same.
FORMULA_MARKS = tuple("=+-@＝＋－＠")
# What may come between the mark and what it computes: signs, brackets, and numbers with an operator behind them.
# Here and below a run that was taken is not given back (`++`, `*+`), so that no cell takes long.
LEAD = r"(?:[-+@(\s]++|\d[\d.]*+[\s)]*+[-+*/^&])*+"
# What is most likely a formula, and not a text that happens to begin like one.
FORMULA = re.compile(
    rf"""={LEAD}[^\W\d][\w.]*+\(                 # =HYPERLINK(, =(hyperlink(, =-SUM(
      | [+@](?!\s){LEAD}[^\W\d][\w.]*+\(         # +hyperlink(, +1+HYPERLINK(, @sum(
      | [-+@]{LEAD}[A-Z][A-Z0-9.]*+\(             # -SUM(, - SUM(
      | [-+@=]{LEAD}[^\W\d]\w*+\|(?:(?!\s)|\s*+')  # =cmd|, -2+3+cmd|, +cmd| '
      | [+=]{LEAD}(?:'[^'\n]*+'|[\w.\[\]]++)!\$?[A-Za-z]{{1,3}}\$?\d  # =Sheet1!A1, ='Sheet 1'!A1
      | [+=]{LEAD}\$?[A-Za-z]{{1,3}}\$?\d++\s*+(?:$|[-+*/^&:%)<=>])     # =a1, +A1, +A1*2
      | ={LEAD}\$?[A-Z]{{1,3}}\$?\d               # =A1
      | =\s*+[-+]?\d                             # =1+1
      | =[(\s]*+"                                # ="text"
    """,
    re.VERBOSE,
)


def is_formula(cell: str) -> bool:
    """Whether a cell is most likely a formula: `=SUM(A1)`, `@SUM(1)`, `=cmd|…`; a plain "- well" or "=)" is none."""
    cell = cell.lstrip()
    return cell.startswith(FORMULA_MARKS) and FORMULA.match(cell) is not None


def runs_in_a_spreadsheet(cell: str) -> bool:
    """Whether a spreadsheet may take a cell for a formula, whatever it was meant to be: "- well" too, but not -5."""
    cell = cell.strip()
    return cell.startswith(FORMULA_MARKS) and NUMBER.fullmatch(cell) is None


def _empty_text(rules: Rules) -> Check:
    first, other = shown(rules.mapping.text), shown(rules.mapping.text_b)

    def check(text: str, second: str | None, label: str, split: str | None) -> Message | None:
        return None if text and second != "" else _nothing(other if text else first)

    return check


def _empty_label(rules: Rules) -> Check:
    column = shown(rules.mapping.label)
    return lambda text, second, label, split: None if label else _nothing(column)


def _nothing(column: str) -> Message:
    return Message("{where} has nothing in the column {column}", column=column)


def _long_text(rules: Rules) -> Check:
    most = rules.text_max

    def check(text: str, second: str | None, label: str, split: str | None) -> Message | None:
        if len(text) <= most and (second is None or len(second) <= most):
            return None
        return _long(TEXT_TOO_LONG, max(text, second or "", key=len), most)

    return check


def _long_label(rules: Rules) -> Check:
    most = rules.label_max
    return lambda text, second, label, split: None if len(label) <= most else _long(LABEL_TOO_LONG, label, most)


def _long(clause: str, value: str, most: int) -> Message:
    return Message(clause, chars=len(value), most=most, begins=shown(value[:most]))


def _bad_score(rules: Rules) -> Check | None:
    def check(text: str, second: str | None, label: str, split: str | None) -> Message | None:
        if score(label) is not None:
            return None
        return Message("{where} has the score {score}, which is no number", score=shown(label))

    return check if rules.mapping.kind == "similarity" else None


def _bad_split(rules: Rules) -> Check | None:
    def check(text: str, second: str | None, label: str, split: str | None) -> Message | None:
        if split is None or split.casefold() in SPLITS:
            return None
        return Message(
            "{where} is in the split {split}, which is none of train, validation and test", split=shown(split)
        )

    return check if rules.mapping.split else None


def _repeats(alike: Alike) -> int | None:
    first = alike.first_of[alike.label]
    return None if first == alike.row else first


def _differs(alike: Alike) -> int | None:
    return next((row for label, row in alike.first_of.items() if label != alike.label), None)


def _repeats_another(seen: Noticed) -> Message:
    return Message("{here} repeats {there}: {text}.", here=seen.here, there=seen.there, text=shown(seen.cells.text))


def _has_two_labels(seen: Noticed) -> Message:
    return Message(
        "{here} has the label {label} and {there} has {other} for the same text: {text}.",
        here=seen.here,
        label=shown(seen.cells.label),
        there=seen.there,
        other=shown(seen.other.label),
        text=shown(seen.cells.text),
    )


def _has_formula(seen: Noticed) -> Message:
    cells = (seen.cells.text, seen.cells.second or "", seen.cells.label)
    cell = shown(next(filter(is_formula, cells)))
    return Message("{here} has a cell that a spreadsheet would run: {cell}.", here=seen.here, cell=cell)


# A row that has to go has the first of these that fits.
PROBLEMS: Mapping[str, ProblemKind] = {
    kind.name: kind
    for kind in (
        ProblemKind(
            "fields",
            N_("rows that do not fit the columns"),
            True,
            N_("The row has another number of fields than there are columns, or cannot be read at all."),
        ),
        ProblemKind(
            "empty_text",
            N_("rows without a text"),
            True,
            N_("A text is empty, or nothing but white space."),
            check=_empty_text,
        ),
        ProblemKind(
            "empty_label",
            N_("rows without a label"),
            True,
            N_("The label is empty, or nothing but white space."),
            check=_empty_label,
        ),
        ProblemKind(
            "long_text",
            N_("rows with an over-long text"),
            True,
            N_("A text has more characters than are read."),
            check=_long_text,
        ),
        ProblemKind(
            "long_label",
            N_("rows with an over-long label"),
            True,
            N_("The label has more characters than are read."),
            check=_long_label,
        ),
        ProblemKind(
            "bad_score",
            N_("rows whose score is no number"),
            True,
            N_("A similarity score is a finite number."),
            check=_bad_score,
        ),
        ProblemKind(
            "bad_split",
            N_("rows with an unknown split"),
            True,
            N_("The split is none of train, validation and test, nor another usual name of these."),
            check=_bad_split,
        ),
        ProblemKind(
            "duplicate",
            N_("repeated rows"),
            False,
            N_("The same text with the same label came before; in two splits, it makes a test look better than it is."),
            of_texts=_repeats,
            message=_repeats_another,
        ),
        ProblemKind(
            "two_labels",
            N_("rows whose text has two labels"),
            False,
            N_("The same text has different labels, so one of them is likely to be wrong."),
            of_texts=_differs,
            message=_has_two_labels,
        ),
        ProblemKind(
            "formula",
            N_("rows with a spreadsheet formula"),
            False,
            N_("A cell begins like a formula, which a spreadsheet would run when these rows are opened there."),
            of_cell=is_formula,
            message=_has_formula,
        ),
    )
}
