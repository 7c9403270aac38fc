"""Usable rows of one or more tables, and the problems of the others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from core.config import ReadingConfig
from core.config.describe import value_text
from core.config.fields import fields_of
from core.errors import ConfigError, TaskError, quote_value
from core.messages import ENGLISH, Message, _, clauses, in_language, join_label, join_list, ngettext
from core.settings import PREFIX, Settings, settings
from core.tasks.files.columns import GUESS_ALL, SPLITS, guess_columns
from core.tasks.files.delimited import Dialect, UnreadableRow
from core.tasks.files.problems import (
    PROBLEMS,
    PROBLEMS_LISTED,
    NumberedRows,
    Problem,
    check_drop,
    optional_problems,
    row_problem,
)
from core.tasks.files.tables import Format, Table, open_table
from core.tasks.rows import Rows, SplitName, place_words

READING = fields_of(ReadingConfig)
# One seed for all users, so that the same file gives the same rows.
SAMPLE_SEED = 20210111


class Source(NamedTuple):
    """The format of a file, and the number of its rows that were read."""

    name: str
    format: Format
    encoding: str | None
    dialect: Dialect | None
    rows: int
    total: int
    sampled: bool

    @property
    def sentence(self) -> str:
        """Return one line: `reviews.csv: CSV, UTF-8, comma; 1,204 rows`."""
        parts = [
            self.format,
            value_text(self.encoding, READING["encoding"]) if self.encoding else "",
            *(unusual_names(self.dialect) if self.dialect else []),
        ]
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
        encoding, dialect: None if the format has none.
        mapping: the options, with every field of the format filled in.
        rows: in the order of the file.
        lines: first line of each row, from 1 (in a Parquet file, its number).
        problems: in the order of the file, the first 1,000 of each kind.
        counts: problems by kind; a row has at most one.
        total: number of rows in the file, including unusable ones.
        sampled: True if `rows` is a seeded sample of the usable rows.
    """

    name: str
    format: Format
    encoding: str | None
    dialect: Dialect | None
    columns: tuple[str, ...]
    mapping: ReadingConfig
    rows: Rows
    lines: tuple[int, ...]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    total: int
    sampled: bool

    @property
    def source(self) -> Source:
        rows = len(self.rows)
        return Source(self.name, self.format, self.encoding, self.dialect, rows, self.total, self.sampled)


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

        Raises: ConfigError for a kind that does not exist; TaskError if no row of a file is left.
        """
        check_drop(kinds)
        kept = []
        for reading, optional in zip(self.readings, self.optional, strict=True):
            gone = {row for kind in kinds for row in optional.get(kind, ())}
            if gone and len(gone) == len(reading.rows):
                raise TaskError(
                    "{file} has no rows left after dropping these: choose fewer kinds of problems.",
                    file=quote_value(reading.name),
                )
            left = [row for row in range(len(reading.rows)) if row not in gone]
            kept.append(reading.rows.take(left) if gone else reading.rows)
        return kept

    @property
    @in_language(ENGLISH)
    def source(self) -> str:
        """Return the source of the rows, in English, as the library stores it."""
        return "; ".join(reading.source.sentence for reading in self.readings) + "."

    @property
    def dropped(self) -> int:
        """Return the number of unusable rows."""
        return sum(sum(reading.counts.values()) for reading in self.readings)


def unusual_names(dialect: Dialect) -> list[str]:
    """Return the names of the delimiter, and of a quotation mark or an escape that is unusual."""
    usual = {"quote": '"', "escape": ""}
    unusual = [name for name in usual if getattr(dialect, name) != usual[name]]
    return [value_text(getattr(dialect, name), READING[name]).lower() for name in ("delimiter", *unusual)]


class UsableRow(NamedTuple):
    """A usable row."""

    line: int
    text: str
    second: str
    label: str
    split: SplitName | None


def read_file(path: Path, options: ReadingConfig = GUESS_ALL) -> Reading:
    """Read the rows of the file at a path. Raises: see `read_rows`."""
    return read_rows(open_table(Path(path), options=options), options)


def read_rows(table: Table, options: ReadingConfig = GUESS_ALL) -> Reading:
    """Read a whole table, check every row, and keep the usable ones, or a sample of them.

    Args:
        options: names of the columns; None is guessed. Encoding, dialect and header are those of the table.
    Raises: ConfigError for a column that does not exist; TaskError for a table that cannot be read, exceeds a limit, or
        has no usable row.
    """
    limits, name = settings(), quote_value(Path(table.name).name)
    mapping = _mapping(table, options, name)
    check, kept = RowChecker(table, mapping, limits), Sampler(limits.max_rows)
    for row in check.usable_rows():
        if kept.seen == kept.size and limits.excess_rows == "refuse":
            raise TaskError(
                "{file} has more than {most:,} rows ({where} is one too many): give fewer, or raise {setting}.",
                file=name,
                most=kept.size,
                where=place_words(table.place, row.line),
                setting=f"{PREFIX}MAX_ROWS",
            )
        kept.add(row)
    if not kept.seen:
        raise check.no_rows(name)
    found = kept.rows()
    rows = Rows(
        tuple(row.text for row in found),
        tuple(row.label for row in found),
        tuple(row.second for row in found) if mapping.text_b else None,
        tuple(row.split or "train" for row in found) if mapping.split else None,
        mapping.kind or "classes",
    )
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
    return Reading(
        name=Path(table.name).name,
        format=table.format,
        encoding=table.encoding,
        dialect=table.dialect,
        columns=table.columns,
        mapping=mapping,
        rows=rows,
        lines=tuple(row.line for row in found),
        problems=tuple(check.problems),
        counts=dict(check.counts),
        total=check.total,
        sampled=kept.seen > limits.max_rows,
    )


def combine_readings(readings: Sequence[Reading]) -> CombinedFiles:
    """Combine files, and find repeated rows, texts with two labels and formulas across all of them."""
    noted = optional_problems(
        [NumberedRows(one.name, "row" if one.format == "Parquet" else "line", one.rows, one.lines) for one in readings]
    )
    problems: list[Problem] = []
    counts: Counter[str] = Counter()
    for reading, of_file in zip(readings, noted, strict=True):
        problems += sorted([*reading.problems, *of_file.problems], key=lambda problem: problem.line)
        counts.update(reading.counts)
        counts.update({kind: len(rows) for kind, rows in of_file.rows.items()})
    return CombinedFiles(
        tuple(readings),
        tuple(problems),
        {kind: counts[kind] for kind in PROBLEMS if counts[kind]},
        tuple(of_file.rows for of_file in noted),
    )


def _mapping(table: Table, options: ReadingConfig, name: str) -> ReadingConfig:
    try:
        guessed = guess_columns(table.columns, table.preview, options, table.unread)
    except TaskError as error:
        raise TaskError("{file}: {problem}", file=name, problem=error) from None
    except ConfigError as error:
        error.message = Message("{file}: {problem}", file=name, problem=error)
        raise
    dialect = table.dialect._asdict() if table.dialect else dict.fromkeys(Dialect._fields)
    facts = {"encoding": table.encoding, "header": table.header} | dialect
    return guessed.model_copy(update=facts)


class RowChecker:
    """Checker of a table, which yields the usable rows and counts the problems of the others."""

    def __init__(self, table: Table, mapping: ReadingConfig, limits: Settings) -> None:
        self.total = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self._table, self._mapping = table, mapping
        self._most = (limits.max_text_chars, limits.max_label_chars)

    def usable_rows(self) -> Iterator[UsableRow]:
        """Yield the usable rows. Each of the others adds one problem."""
        table, mapping = self._table, self._mapping
        parts = [mapping.text, mapping.text_b, mapping.label, mapping.split]
        places = [table.columns.index(column) if column else None for column in parts]
        for line, fields in table.records({column for column in parts if column}):
            self.total += 1
            if len(fields) != len(table.columns):
                count = ngettext("{count} field", "{count} fields", len(fields))
                unfit = Message(
                    "{where} has {fields}, but there are {columns:,} columns", fields=count, columns=len(table.columns)
                )
                self._add("fields", line, fields.reason if isinstance(fields, UnreadableRow) else unfit)
                continue
            text, second, label, split = [None if place is None else fields[place].strip() for place in places]
            assert text is not None
            assert label is not None
            if problem := row_problem(text, second, label, split, mapping, self._most):
                self._add(problem[0], line, problem[1])
                continue
            yield UsableRow(line, text, second or "", label, None if split is None else SPLITS[split.casefold()])

    def _add(self, kind: str, line: int, clause: Message) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= PROBLEMS_LISTED:
            where = place_words(self._table.place, line, begins=True)
            # Translators: a clause on what is wrong with a row, with the full stop that ends a sentence.
            message = Message("{clause}.", clause=clause.fill(where=where))
            self.problems.append(Problem(kind, line, message, Path(self._table.name).name))

    def no_rows(self, name: str) -> TaskError:
        """Return the error for a table without a usable row."""
        if not self.total:
            return TaskError("{file} has columns but no rows: add rows with a text and a label.", file=name)
        kind, count = self.counts.most_common(1)[0]
        first = next(problem for problem in self.problems if problem.kind == kind)
        clause: Message = first.message.values["clause"]
        return TaskError(
            "{file} has no usable row: of {total:,}, {count:,} are {kind} ({first}).",
            file=name,
            total=self.total,
            count=count,
            kind=Message(PROBLEMS[kind].label),
            first=clause.fill(where=place_words(self._table.place, first.line)),
        )


class Sampler:
    """A uniform sample of a stream of rows (Vitter 1985, algorithm R). The same rows give the same sample."""

    def __init__(self, size: int) -> None:
        self.seen = 0
        self.size = size
        self._rows: list[UsableRow] = []
        self._random = random.Random(SAMPLE_SEED)  # noqa: S311 a sample, not a secret

    def add(self, row: UsableRow) -> None:
        self.seen += 1
        if self.seen <= self.size:
            self._rows.append(row)
        elif (place := self._random.randrange(self.seen)) < self.size:
            self._rows[place] = row

    def rows(self) -> list[UsableRow]:
        """Return the sample in the order of the file."""
        return sorted(self._rows, key=attrgetter("line"))
