"""Usable rows of one or more tables, and the problems of the others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from core.config import ReadingConfig
from core.config.describe import value_text
from core.config.fields import fields_of
from core.errors import PlaygroundError, TaskError, quote_value
from core.messages import ENGLISH, N_, Message, _, clauses, in_language, join_label, join_list, ngettext
from core.settings import PREFIX, settings
from core.tasks.files.columns import GUESS_ALL, SPLITS, guess_columns
from core.tasks.files.delimited import Dialect
from core.tasks.files.problems import (
    PROBLEMS,
    Problem,
    ProblemList,
    is_formula,
    limit_error,
    row_problem,
    score,
)
from core.tasks.files.tables import Format, Table, open_table
from core.tasks.rows import Rows, SplitName, place_words
from core.tasks.survey import folded

READING = fields_of(ReadingConfig)
USUAL = {"quote": '"', "escape": ""}
# One seed for all users, so that the same file gives the same rows.
SAMPLE_SEED = 20210111
# Line, text, second text ("" if the rows are no pairs), label and split.
UsableRow = tuple[int, str, str, str, SplitName]
OPTIONAL_CLAUSES = {
    "duplicate": N_("{where} repeats {there}: {text}"),
    "two_labels": N_("{where} has the label {label}, but {there} has {other} for the same text: {text}"),
    "formula": N_("{where} has a cell that a spreadsheet would run as a formula: {cell}"),
}


class Source(NamedTuple):
    """The format of a file, and the number of its rows that were read.

    Attributes:
        mapping: the options, with every field of the format filled in.
        total: number of rows in the file, including unusable ones.
        sampled: True if the rows are a seeded sample of the usable rows.
    """

    name: str
    format: Format
    mapping: ReadingConfig
    rows: int
    total: int
    sampled: bool

    @property
    def sentence(self) -> str:
        """Return one line: `reviews.csv: CSV, UTF-8, comma; 1,204 rows`."""
        values = self.mapping.model_dump()
        parts = [self.format, value_text(self.mapping.encoding, READING["encoding"]) if self.mapping.encoding else ""]
        names = ("delimiter", *(name for name in USUAL if values[name] != USUAL[name])) if values["delimiter"] else ()
        parts += [value_text(values[name], READING[name]).lower() for name in names]
        count = ngettext("{count} row", "{count} rows", self.rows)
        if self.sampled:
            count = _("a sample of {rows:,} of {total:,} rows", rows=self.rows, total=self.total)
        elif self.total > self.rows:
            count = _("{rows:,} of {total:,} rows", rows=self.rows, total=self.total)
        return join_label(" ".join(self.name.split()), clauses([join_list(part for part in parts if part), count]))


@dataclass(frozen=True)
class Reading:
    """The usable rows of one file, and the problems of the others.

    Attributes:
        rows: in the order of the file.
        lines: first line of each row, from 1 (in a Parquet file, its number).
        problems: in the order of the file, the first 1,000 of each kind.
        counts: problems by kind; a row has at most one.
    """

    source: Source
    rows: Rows
    lines: tuple[int, ...]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]

    def cells(self, row: int) -> tuple[str, ...]:
        """Return the text or both texts, then the label."""
        seconds = () if self.rows.seconds is None else (self.rows.seconds[row],)
        return (self.rows.texts[row], *seconds, self.rows.labels[row])

    def label(self, row: int) -> str | float | None:
        """Return the label for comparison, with a score as a number."""
        return self.rows.labels[row] if self.rows.kind == "classes" else score(self.rows.labels[row])


@dataclass(frozen=True)
class CombinedFiles:
    """One or more readings that make one task.

    Attributes:
        readings: the training file first.
        problems: file by file, in its order, the first 1,000 of each kind; a row may repeat one of an earlier file.
        counts: problems by kind; a row has at most one of those that make it unusable.
        optional: for each reading, the rows with problems that the user may ignore, by kind of problem.
    """

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    optional: tuple[Mapping[str, Sequence[int]], ...]

    def dropping(self, kinds: Collection[str]) -> list[Rows]:
        """Return each file's rows without those that have a problem of these kinds. Of repeated rows, the first stays.

        Raises: TaskError if no row of a file is left.
        """
        kept = []
        for reading, optional in zip(self.readings, self.optional, strict=True):
            gone = {row for kind in kinds for row in optional.get(kind, ())}
            if gone and len(gone) == len(reading.rows):
                raise TaskError(
                    "{file} has no rows left after dropping these: choose fewer kinds of problems.",
                    file=quote_value(reading.source.name),
                )
            left = [row for row in range(len(reading.rows)) if row not in gone]
            kept.append(reading.rows.take(left) if gone else reading.rows)
        return kept

    @property
    @in_language(ENGLISH)
    def source(self) -> str:
        """Return the source of the rows, in English, as the library stores it."""
        return "; ".join(reading.source.sentence for reading in self.readings) + "."


def read_file(path: Path, options: ReadingConfig = GUESS_ALL) -> Reading:
    """Read the rows of the file at a path. Raises: see `read_rows`."""
    return read_rows(open_table(path, options=options), options)


def read_rows(table: Table, options: ReadingConfig = GUESS_ALL) -> Reading:
    """Read a whole table, check every row, and keep the usable ones, or a sample of them.

    Args:
        options: names of the columns; None is guessed. Encoding, dialect and header are those of the table.
    Raises: ConfigError for a column that does not exist; TaskError for a table that cannot be read, exceeds a limit, or
        has no usable row.
    """
    limits, name = settings(), quote_value(table.name)
    try:
        mapping = guess_columns(table.columns, table.preview, options)
    except PlaygroundError as error:
        error.message = Message("{file}: {problem}", file=name, problem=error.message)
        raise
    dialect = table.dialect._asdict() if table.dialect else dict.fromkeys(Dialect._fields)
    mapping = mapping.model_copy(update={"encoding": table.encoding, "header": table.header} | dialect)
    problems = ProblemList(table.name, table.format)
    kept: list[UsableRow] = []
    usable, rng = 0, random.Random(SAMPLE_SEED)  # noqa: S311 a sample, not a secret
    # A uniform sample of a stream of rows (Vitter 1985, algorithm R).
    for usable, row in enumerate(_usable_rows(table, mapping, problems), 1):
        if usable <= limits.max_rows:
            kept.append(row)
        elif limits.excess_rows == "refuse":
            raise limit_error(name, "max_rows", limits.max_rows)
        elif (place := rng.randrange(usable)) < limits.max_rows:
            kept[place] = row
    if not kept:
        raise problems.no_rows(name)
    lines, texts, seconds, labels, splits = zip(*sorted(kept), strict=True)
    pairs, split = seconds if mapping.text_b else None, splits if mapping.split else None
    rows = Rows(texts, labels, pairs, split, mapping.kind or "classes")
    classes = len(set(rows.labels)) if rows.kind == "classes" else 0
    if classes > limits.max_classes:
        raise TaskError(
            "{file} has {count:,} different labels in the column {column}, but at most {most:,} are supported: "
            "check which column holds the labels, or raise {setting}.",
            file=name,
            count=classes,
            column=quote_value(mapping.label),
            most=limits.max_classes,
            setting=f"{PREFIX}MAX_CLASSES",
        )
    total = usable + problems.counts.total()
    source = Source(table.name, table.format, mapping, len(rows), total, usable > len(rows))
    return Reading(source, rows, lines, tuple(problems.listed), dict(problems.counts))


def read_upload(
    files: Sequence[tuple[bytes, str]], options: ReadingConfig = GUESS_ALL
) -> tuple[Table, CombinedFiles | Message]:
    """Open a training file, and read its rows and those of a test file, if there is one.

    Args:
        files: the content and the name of each.
        options: those of the training file; None is guessed.
    Returns: the training file's table, without a function that reads it, and the rows, or why they cannot be read.
    Raises: TaskError if the training file is not a table.
    """
    (content, name), *tests = files
    table = open_table(content, name, options)
    of_test = options.model_copy(update={"split": ""})  # every row of a test file is a test row
    found: CombinedFiles | Message
    try:
        readings = [read_rows(table, options)]
        readings += [read_rows(open_table(raw, name, of_test), of_test) for raw, name in tests]
        found = combine_readings(readings)
    except PlaygroundError as error:
        found = error.message
    return replace(table, records=tuple), found


def combine_readings(readings: Sequence[Reading]) -> CombinedFiles:
    """Combine files, and find repeated rows, texts with two labels and formulas across all of them.

    Texts are compared in `folded` form, and scores as numbers. A row may repeat one of an earlier file.
    """
    lists = [ProblemList(reading.source.name, reading.source.format) for reading in readings]
    optional: list[dict[str, list[int]]] = [{} for _ in readings]
    places = [(file, row) for file, reading in enumerate(readings) for row in range(len(reading.rows))]
    keys = ["\n".join(folded(readings[file].cells(row)[:-1])) for file, row in places]
    # The first row of each label of each text. No folded text holds a line break.
    first: dict[str, dict[str | float | None, tuple[int, int]]] = {}
    for (file, row), key in zip(places, keys, strict=True):
        first.setdefault(key, {}).setdefault(readings[file].label(row), (file, row))
    for here, key in zip(places, keys, strict=True):
        file, row = here
        cells, labels = readings[file].cells(row), first[key]
        same = labels[readings[file].label(row)]
        found = [("duplicate", same)] if same != here else []
        if len(labels) > 1:
            found.append(("two_labels", next(place for place in labels.values() if place != same)))
        formula = next(filter(is_formula, cells), None)
        if formula:
            found.append(("formula", here))
        for kind, (other_file, other_row) in found:
            optional[file].setdefault(kind, []).append(row)
            there = place_words(lists[other_file].unit, readings[other_file].lines[other_row])
            if other_file != file:
                # Translators: line 5 of 'train.csv'.
                there = Message("{line} of {file}", line=there, file=quote_value(lists[other_file].file))
            message = Message(
                OPTIONAL_CLAUSES[kind],
                there=there,
                text=quote_value(cells[0]),
                label=quote_value(cells[-1]),
                other=quote_value(readings[other_file].rows.labels[other_row]),
                cell=quote_value(formula),
            )
            lists[file].add(kind, readings[file].lines[row], message)
    problems: list[Problem] = []
    counts: Counter[str] = Counter()
    for reading, of_file in zip(readings, lists, strict=True):
        problems += sorted([*reading.problems, *of_file.listed], key=attrgetter("line"))
        counts.update(reading.counts)
        counts.update(of_file.counts)
    in_order = {kind: counts[kind] for kind in PROBLEMS if counts[kind]}
    return CombinedFiles(tuple(readings), tuple(problems), in_order, tuple(optional))


def _usable_rows(table: Table, mapping: ReadingConfig, problems: ProblemList) -> Iterator[UsableRow]:
    """Yield the usable rows. Each of the others adds one problem."""
    limits = settings()
    most = (limits.max_text_chars, limits.max_label_chars)
    parts = (mapping.text, mapping.text_b, mapping.label, mapping.split)
    places = [table.columns.index(column) if column else None for column in parts]
    for line, fields in table.records():
        if isinstance(fields, Message):
            problems.add("fields", line, fields)
            continue
        if len(fields) != len(table.columns):
            unfit = Message(
                "{where} has {fields}, but there are {columns:,} columns",
                fields=Message("{count} field", "{count} fields", count=len(fields)),
                columns=len(table.columns),
            )
            problems.add("fields", line, unfit)
            continue
        text, second, label, split = [None if place is None else fields[place].strip() for place in places]
        assert text is not None
        assert label is not None
        if problem := row_problem(text, second, label, split, mapping, most):
            problems.add(problem[0], line, problem[1])
            continue
        yield line, text, second or "", label, "train" if split is None else SPLITS[split.casefold()]
