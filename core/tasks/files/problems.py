"""Problems of rows: their kinds, the checks that find them, and the sentence for each row."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from core.config import ReadingConfig
from core.errors import TaskError, quote_value
from core.messages import N_, Message
from core.settings import PREFIX
from core.tasks.files.columns import NUMBER, SPLITS
from core.tasks.rows import place_words

# Maximum number of listed problems of each kind in each file. All are counted.
PROBLEMS_LISTED = 1_000
EMPTY = Message("{where} has an empty {column}")


class ProblemKind(NamedTuple):
    """A kind of problem that a row may have.

    Attributes:
        label: name in a list of counts; translated for display, like `sentence`.
        must_drop: whether such rows cannot be used; if False, the user chooses.
        sentence: why the problem matters; "" if the label says it.
    """

    label: str
    must_drop: bool = True
    sentence: str = ""


class Problem(NamedTuple):
    """A problem of one row. `line` is the first line of the row, from 1 (in a Parquet file, its number)."""

    kind: str
    line: int
    message: Message
    file: str


# An unusable row is reported with the first of these problems that applies.
PROBLEMS: Mapping[str, ProblemKind] = {
    "fields": ProblemKind(N_("rows that do not fit the columns")),
    "empty_text": ProblemKind(N_("rows without a text")),
    "empty_label": ProblemKind(N_("rows without a label")),
    "long_text": ProblemKind(N_("rows with an over-long text")),
    "long_label": ProblemKind(N_("rows with an over-long label")),
    "bad_score": ProblemKind(N_("rows with an invalid score")),
    "bad_split": ProblemKind(N_("rows with an unknown split")),
    "duplicate": ProblemKind(
        N_("repeated rows"),
        must_drop=False,
        sentence=N_(
            "An earlier row has the same text and label. Across splits, repeated rows make test scores too high."
        ),
    ),
    "two_labels": ProblemKind(
        N_("rows whose text has two labels"),
        must_drop=False,
        sentence=N_("The same text has different labels, so one of them is probably wrong."),
    ),
    "formula": ProblemKind(
        N_("rows with a spreadsheet formula"),
        must_drop=False,
        sentence=N_("A cell looks like a formula, which a spreadsheet would run."),
    ),
}
# Units of the limits of the settings.
LIMITS = {"max_file_mb": N_("MB"), "max_columns": N_("columns"), "max_rows": N_("rows")}


def limit_error(file: str, limit: str, most: int) -> TaskError:
    """Return the error for a file that exceeds a limit of the settings."""
    return TaskError(
        "{file} has more than {most:,} {unit}: shorten the file, or raise {setting}.",
        file=file,
        most=most,
        unit=Message(LIMITS[limit]),
        setting=f"{PREFIX}{limit.upper()}",
    )


def score(text: str) -> float | None:
    """Parse a finite number; return None for anything else."""
    value = float(text) if NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


# Some spreadsheets accept the full-width forms of East Asian keyboards.
FORMULA_MARKS = tuple("=+-@＝＋－＠")
# Likely formulas, but not texts that happen to begin like one. After the mark come signs, brackets and numbers.
# Repetitions are possessive (`++`, `*+`), so that no cell makes the pattern backtrack.
LEAD = r"[-+@(\s\d.*/^&]*+"
FORMULA = re.compile(
    rf"""=[\s(]*+[-+]?(?:\d|["'\[])                                  # =1+1, ="text", ='Sheet 1'!A1
      | ={LEAD}(?:[^\W\d][\w.]*+[(|!]|\$?[A-Za-z]{{1,3}}\$?\d)      # =SUM(, =cmd|, =Sheet1!A1, =$A$1
      | [-+@]{LEAD}(?:[A-Z][A-Z0-9.]*+\(|[^\W\d]\w*+\|\S)         # -SUM(, +1+HYPERLINK(, @cmd|
    """,
    re.VERBOSE,
)


def is_formula(cell: str) -> bool:
    """Return whether a cell is most likely a formula: `=SUM(A1)`, `@SUM(1)`, `=cmd|…`; not "- well" or "=)"."""
    cell = cell.lstrip()
    return cell.startswith(FORMULA_MARKS) and FORMULA.match(cell) is not None


def row_problem(
    text: str, second: str | None, label: str, split: str | None, mapping: ReadingConfig, limits: tuple[int, int]
) -> tuple[str, Message] | None:
    """Return the kind of the first problem that makes a row unusable, and a clause about it; None for a usable row.

    The caller fills in the placeholder `{where}` of the clause.

    Args:
        text, second, label, split: cells without surrounding white space; None for a column that does not exist.
        limits: maximum number of characters of a text and of a label.
    """
    if not text or second == "":
        return "empty_text", EMPTY.fill(column=quote_value(mapping.text_b if text else mapping.text))
    if not label:
        return "empty_label", EMPTY.fill(column=quote_value(mapping.label))
    text_max, label_max = limits
    longest = max(text, second or "", key=len)
    if len(longest) > text_max:
        clause = N_("{where} has a text of more than {most:,} characters: {begins}")
        return "long_text", Message(clause, most=text_max, begins=quote_value(longest[:text_max]))
    if len(label) > label_max:
        clause = N_("{where} has a label of more than {most:,} characters: {begins}")
        return "long_label", Message(clause, most=label_max, begins=quote_value(label[:label_max]))
    if mapping.kind == "similarity" and score(label) is None:
        return "bad_score", Message("{where} has the score {score}, which is not a number", score=quote_value(label))
    if split is not None and split.casefold() not in SPLITS:
        return "bad_split", Message(
            "{where} is in the split {split}, which is not train, validation or test", split=quote_value(split)
        )
    return None


class ProblemList:
    """Problems of one file: all are counted, and the first of each kind are listed."""

    def __init__(self, file: str, format_: str) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self.listed: list[Problem] = []
        self.unit = "row" if format_ == "Parquet" else "line"

    def add(self, kind: str, line: int, clause: Message) -> None:
        """Add a problem. Args: clause: a clause without its placeholder `{where}`."""
        self.counts[kind] += 1
        if self.counts[kind] <= PROBLEMS_LISTED:
            # Translators: a clause on what is wrong with a row, with the full stop that ends a sentence.
            message = Message("{clause}.", clause=clause.fill(where=place_words(self.unit, line, begins=True)))
            self.listed.append(Problem(kind, line, message, self.file))

    def no_rows(self, name: str) -> TaskError:
        """Return the error for a table without a usable row."""
        if not self.counts:
            return TaskError("{file} has columns but no rows: add rows with a text and a label.", file=name)
        kind, count = self.counts.most_common(1)[0]
        first = next(problem for problem in self.listed if problem.kind == kind)
        clause: Message = first.message.values["clause"]
        return TaskError(
            "{file} has no usable row: of {total:,}, {count:,} are {kind} ({first}).",
            file=name,
            total=self.counts.total(),
            count=count,
            kind=Message(PROBLEMS[kind].label),
            first=clause.fill(where=place_words(self.unit, first.line)),
        )
