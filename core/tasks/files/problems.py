"""What may be wrong with a row, in words for people; which rows have to go, and which may stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


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
            "The same text with the same label stands above; in two splits, it makes a test look better than it is.",
        ),
        ProblemKind(
            "two_labels",
            "rows whose text has two labels",
            False,
            "The same text stands with different labels, so that one of them is likely to be wrong.",
        ),
        ProblemKind(
            "formula",
            "rows with a spreadsheet formula",
            False,
            "A cell begins like a formula, which a spreadsheet would run when these rows are opened there.",
        ),
    )
}

FORMULA_MARKS = "=+-@"
# A function call, a link to another program (cmd|…), a cell, or a number or a quoted text behind an equals sign.
FORMULA = re.compile(
    r"""=\s*[A-Za-z_][\w.]*\(      # =HYPERLINK(
      | [-+@]\s*[A-Z][A-Z0-9.]*\(  # @SUM(, +SUM(
      | [-+@=][-+*/\d.\s]*\w+\|(?!\s)  # =cmd|, -2+3+cmd|
      | [-+@=][-+*/\d.\s]*\w+\|\s*' # +cmd| '
      | =\s*\$?[A-Z]{1,3}\$?\d     # =A1
      | =\s*[-+]?\d                # =1+1
      | =\s*"                      # ="text"
    """,
    re.VERBOSE,
)


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet would run a cell: `=SUM(A1)`, `@SUM(1)`, `=cmd|…`; a plain "- well" or "=)" is none."""
    cell = cell.lstrip()
    return cell[:1] in FORMULA_MARKS and bool(cell) and FORMULA.match(cell) is not None
