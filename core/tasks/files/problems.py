"""Problems of rows: their kinds, the checks that find them, and the sentence for each row."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer, PlainValidator

from core.config import ReadingConfig
from core.errors import ConfigError, quote_value
from core.messages import N_, Message, dump_text, load_text
from core.tasks.files.columns import NUMBER, SPLITS
from core.tasks.rows import Rows, place_words
from core.tasks.survey import folded

# Maximum number of listed problems of each kind in each file. All are counted.
PROBLEMS_LISTED = 1_000
DIGEST_BYTES = 16

Label = str | float | None
# A message in JSON.
StoredMessage = Annotated[
    Message,
    PlainValidator(lambda text: load_text(text.encode())),
    PlainSerializer(lambda text: dump_text(text).decode()),
]


class ProblemKind(NamedTuple):
    """A kind of problem that a row may have.

    Attributes:
        label: name in a list of counts; translated for display, like `sentence`.
        must_drop: whether such rows cannot be used; if False, the user chooses.
        sentence: meaning of the problem, and why it matters.
    """

    name: str
    label: str
    must_drop: bool
    sentence: str


class Problem(NamedTuple):
    """A problem of one row. `line` is the first line of the row, from 1 (in a Parquet file, its number)."""

    kind: str
    line: int
    message: StoredMessage
    file: str


# An unusable row is reported with the first of these problems that applies.
PROBLEMS: Mapping[str, ProblemKind] = {
    name: ProblemKind(name, label, must_drop, sentence)
    for name, label, must_drop, sentence in (
        (
            "fields",
            N_("rows that do not fit the columns"),
            True,
            N_("The row has more or fewer fields than there are columns, or cannot be read."),
        ),
        ("empty_text", N_("rows without a text"), True, N_("A text is empty or only white space.")),
        ("empty_label", N_("rows without a label"), True, N_("The label is empty or only white space.")),
        ("long_text", N_("rows with an over-long text"), True, N_("A text is longer than the limit.")),
        ("long_label", N_("rows with an over-long label"), True, N_("The label is longer than the limit.")),
        ("bad_score", N_("rows with an invalid score"), True, N_("The similarity score is not a finite number.")),
        (
            "bad_split",
            N_("rows with an unknown split"),
            True,
            N_("The split is not train, validation, test or a common name of these."),
        ),
        (
            "duplicate",
            N_("repeated rows"),
            False,
            N_("An earlier row has the same text and label. Across splits, repeated rows make test scores too high."),
        ),
        (
            "two_labels",
            N_("rows whose text has two labels"),
            False,
            N_("The same text has different labels, so one of them is probably wrong."),
        ),
        (
            "formula",
            N_("rows with a spreadsheet formula"),
            False,
            N_("A cell looks like a formula, which a spreadsheet would run."),
        ),
    )
}


def check_drop(kinds: Iterable[str]) -> None:
    """Check that these kinds of problems exist. Raises: ConfigError."""
    for kind in kinds:
        if kind not in PROBLEMS:
            raise ConfigError("drop", kind, "choose from {names}.", names=tuple(PROBLEMS))


def score(text: str) -> float | None:
    """Parse a finite number; return None for anything else."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# Some spreadsheets accept the full-width forms of East Asian keyboards.
FORMULA_MARKS = tuple("=+-@＝＋－＠")
# Characters between the mark and the formula: signs, brackets, and numbers followed by an operator. Repetitions here
# and below are possessive (`++`, `*+`), so that no cell makes the pattern backtrack.
LEAD = r"(?:[-+@(\s]++|\d[\d.]*+[\s)]*+[-+*/^&])*+"
# Likely formulas, but not texts that happen to begin like one.
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
    """Return whether a cell is most likely a formula: `=SUM(A1)`, `@SUM(1)`, `=cmd|…`; not "- well" or "=)"."""
    cell = cell.lstrip()
    return cell.startswith(FORMULA_MARKS) and FORMULA.match(cell) is not None


def runs_in_a_spreadsheet(cell: str) -> bool:
    """Return whether a spreadsheet may take a cell for a formula: also "- well", but not -5."""
    cell = cell.strip()
    return cell.startswith(FORMULA_MARKS) and NUMBER.fullmatch(cell) is None


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
        return "empty_text", _nothing_in(mapping.text_b if text else mapping.text)
    if not label:
        return "empty_label", _nothing_in(mapping.label)
    text_max, label_max = limits
    longest = max(text, second or "", key=len)
    if len(longest) > text_max:
        return "long_text", Message(
            "{where} has a text of {chars:,} characters, but at most {most:,} are read: {begins}",
            chars=len(longest),
            most=text_max,
            begins=quote_value(longest[:text_max]),
        )
    if len(label) > label_max:
        return "long_label", Message(
            "{where} has a label of {chars:,} characters, but at most {most:,} are read: {begins}",
            chars=len(label),
            most=label_max,
            begins=quote_value(label[:label_max]),
        )
    if mapping.kind == "similarity" and score(label) is None:
        return "bad_score", Message("{where} has the score {score}, which is not a number", score=quote_value(label))
    if split is not None and split.casefold() not in SPLITS:
        return "bad_split", Message(
            "{where} is in the split {split}, which is not train, validation or test", split=quote_value(split)
        )
    return None


def _nothing_in(column: str | None) -> Message:
    return Message("{where} has an empty {column}", column=quote_value(column))


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """The rows of one file, and the line (or the row number, as `unit` says) of each."""

    name: str
    unit: str
    rows: Rows
    lines: Sequence[int]

    def cells(self, row: int) -> tuple[str, ...]:
        """Return the text or both texts, then the label."""
        seconds = () if self.rows.seconds is None else (self.rows.seconds[row],)
        return (self.rows.texts[row], *seconds, self.rows.labels[row])

    def label(self, row: int) -> Label:
        """Return the label for comparison, with a score as a number."""
        label = self.rows.labels[row]
        return label if self.rows.kind == "classes" else score(label)


@dataclass(frozen=True, slots=True)
class OptionalProblems:
    """Optional problems of one file: the user decides whether to drop such rows.

    Attributes:
        rows: rows with a problem, by its kind.
        problems: the first 1,000 of each kind.
    """

    rows: dict[str, list[int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


Place = tuple[NumberedRows, int]

SENTENCES = {
    "duplicate": N_("{here} repeats {there}: {text}."),
    "two_labels": N_("{here} has the label {label}, but {there} has {other} for the same text: {text}."),
    "formula": N_("{here} has a cell that a spreadsheet would run as a formula: {cell}."),
}


def optional_problems(files: Sequence[NumberedRows]) -> list[OptionalProblems]:
    """Find repeated rows, texts with two labels and formulas. A row may repeat one of an earlier file.

    Texts are compared in `folded` form, and scores as numbers.
    """
    places: list[Place] = [(file, row) for file in files for row in range(len(file.rows))]
    # Rows with the same texts have the same short key. No folded text holds a line break.
    keys = ("\n".join(folded(file.cells(row)[:-1])) for file, row in places)
    texts = [hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest() for key in keys]
    # The first row of each text, and the first row of each other label of that text.
    first: dict[bytes, int] = {}
    others: dict[bytes, dict[Label, int]] = {}
    for place, text in enumerate(texts):
        label, start = _label(places[place]), first.setdefault(text, place)
        if label != _label(places[start]):
            others.setdefault(text, {}).setdefault(label, place)
    noted = {id(file): OptionalProblems() for file in files}
    for place, text in enumerate(texts):
        file, row = here = places[place]
        start, of_text = first[text], others.get(text, {})
        is_first_label = _label(here) == _label(places[start])
        same = start if is_first_label else of_text[_label(here)]
        if same != place:
            _note(noted[id(file)], "duplicate", here, places[same])
        if of_text:
            other = next(iter(of_text.values())) if is_first_label else start
            _note(noted[id(file)], "two_labels", here, places[other])
        if any(map(is_formula, file.cells(row))):
            _note(noted[id(file)], "formula", here, here)
    return [noted[id(file)] for file in files]


def _label(place: Place) -> Label:
    file, row = place
    return file.label(row)


def _note(noted: OptionalProblems, kind: str, here: Place, other: Place) -> None:
    """Record a problem of a row, with a message that names the other row and, if they differ, the files."""
    (file, row), (other_file, other_row) = here, other
    rows = noted.rows.setdefault(kind, [])
    rows.append(row)
    if len(rows) > PROBLEMS_LISTED:
        return
    same = file is other_file
    words = place_words(file.unit, file.lines[row], begins=same)
    other_words = place_words(other_file.unit, other_file.lines[other_row])
    if not same:
        # Translators: the line of a file, as the beginning of a sentence: 'test.csv', line 5, repeats …
        words = Message("{file}, {line},", file=quote_value(file.name), line=words)
        # Translators: line 5 of 'train.csv'.
        other_words = Message("{line} of {file}", line=other_words, file=quote_value(other_file.name))
    text, *_, label = cells = file.cells(row)
    message = Message(
        SENTENCES[kind],
        here=words,
        there=other_words,
        text=quote_value(text),
        label=quote_value(label),
        other=quote_value(other_file.cells(other_row)[-1]),
        cell=quote_value(next(filter(is_formula, cells), "")),
    )
    noted.problems.append(Problem(kind, file.lines[row], message, file.name))
