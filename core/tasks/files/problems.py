"""What may be wrong with a row, in words for people; which rows have to go, and which may stay."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.tasks.files.columns import NUMBER

PROBLEMS_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """Something that may be wrong with a row.

    Attributes:
        label: what a list of counts calls it.
        must_drop: rows like this cannot be learned from; where False, people choose.
        sentence: what it means, and why it matters.
    """

    name: str
    label: str
    must_drop: bool
    sentence: str


class Problem(NamedTuple):
    """One problem of one row; `line` is where its row begins, as people count lines (or rows, in a Parquet file)."""

    kind: str
    line: int
    message: str
    file: str


PROBLEMS: Mapping[str, ProblemKind] = {
    kind.name: kind
    for kind in (
        ProblemKind(
            "fields",
            "rows that do not fit the columns",
            True,
            "The row has another number of fields than there are columns, or cannot be read at all.",
        ),
        ProblemKind("empty_text", "rows without a text", True, "A text is empty, or nothing but white space."),
        ProblemKind("empty_label", "rows without a label", True, "The label is empty, or nothing but white space."),
        ProblemKind("long_text", "rows with an over-long text", True, "A text has more characters than are read."),
        ProblemKind("long_label", "rows with an over-long label", True, "The label has more characters than are read."),
        ProblemKind(
            "bad_split",
            "rows with an unknown split",
            True,
            "The split is none of train, validation and test, nor another usual name of these.",
        ),
        ProblemKind("bad_score", "rows whose score is no number", True, "A similarity score is a finite number."),
        ProblemKind(
            "duplicate",
            "repeated rows",
            False,
            "The same text with the same label came before; in two splits, it makes a test look better than it is.",
        ),
        ProblemKind(
            "two_labels",
            "rows whose text has two labels",
            False,
            "The same text has different labels, so one of them is likely to be wrong.",
        ),
        ProblemKind(
            "formula",
            "rows with a spreadsheet formula",
            False,
            "A cell begins like a formula, which a spreadsheet would run when these rows are opened there.",
        ),
    )
}


def listed(problems: Sequence[Problem]) -> tuple[Problem, ...]:
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
