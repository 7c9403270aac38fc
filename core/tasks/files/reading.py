"""From a table to rows that can be learned from, with every problem of the others, row by row."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from core.config import ReadingConfig
from core.config.describe import value_text
from core.config.fields import fields_of
from core.errors import ConfigError, TaskError, shown
from core.messages import Message, _, called, clauses, listed, ngettext
from core.settings import PREFIX, Settings, settings
from core.tasks.files.columns import GUESS_ALL, SPLITS, guess_columns
from core.tasks.files.delimited import Dialect, Record, Unread
from core.tasks.files.optional import Noted, NumberedRows, optional_problems
from core.tasks.files.problems import PROBLEMS, PROBLEMS_LISTED, Problem, Rules, check_drop, fewer
from core.tasks.files.tables import Format, Table, open_table
from core.tasks.rows import Rows, SplitName, place_words

READING = fields_of(ReadingConfig)
# One sample for everybody, so that two people who read the same file have the same rows.
SAMPLE_SEED = 20210111


class Source(NamedTuple):
    """What was read of a file: how, and how many rows of those that it has."""

    name: str
    format: Format
    encoding: str | None
    dialect: Dialect | None
    rows: int
    total: int
    sampled: bool

    @property
    def sentence(self) -> str:
        """In a line: `reviews.csv: CSV, UTF-8, comma; 1,204 rows`."""
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
        return called(" ".join(self.name.split()), clauses([listed(part for part in parts if part), count]))


@dataclass(frozen=True)
class Reading:
    """What was read of a file, and what was not.

    Attributes:
        encoding, dialect: None where there is none.
        mapping: every field of the options filled in, as far as it says something about such a file.
        rows: those that can be learned from, in the order of the file.
        lines: where each of them begins, as people count lines (Parquet: rows).
        problems: in the order of the file; of more than 10,000 the first of each kind, and rather those that drop rows.
        counts: how many of each kind there are; a row has at most one of those that drop it.
        total: rows in the file, with those that cannot be used.
        sampled: `rows` is a seeded sample of those that can be used.
        optional: by kind of problem, which of `rows` have it and may stay.
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
    optional: Mapping[str, tuple[int, ...]]

    def dropping(self, kinds: Collection[str]) -> Rows:
        """The rows without those that have a problem of these kinds; of repeated rows, the first stays.

        Rows that have to go are not among `rows` anyway.

        Raises: ConfigError for a kind that does not exist; TaskError when no row is left.
        """
        return kept_rows(self.name, self.rows, self.optional, kinds)

    @property
    def delimiter(self) -> str | None:
        """None where there is none."""
        return self.dialect.delimiter if self.dialect else None

    @property
    def part(self) -> NumberedRows:
        """The rows with their places, to be compared with those of other files."""
        return NumberedRows(self.name, "row" if self.format == "Parquet" else "line", self.rows, self.lines)

    @property
    def dropped(self) -> int:
        """How many rows of the file cannot be used."""
        return sum(count for kind, count in self.counts.items() if PROBLEMS[kind].must_drop)

    @property
    def source(self) -> Source:
        rows = len(self.rows)
        return Source(self.name, self.format, self.encoding, self.dialect, rows, self.total, self.sampled)

    @property
    def source_sentence(self) -> str:
        return self.source.sentence


def unusual_names(dialect: Dialect) -> list[str]:
    """The delimiter, and what else of a dialect is not what most files have."""
    usual = {"quote": '"', "escape": ""}
    unusual = [name for name in usual if getattr(dialect, name) != usual[name]]
    return [value_text(getattr(dialect, name), READING[name]).lower() for name in ("delimiter", *unusual)]


def kept_rows(name: str, rows: Rows, optional: Mapping[str, Sequence[int]], kinds: Collection[str]) -> Rows:
    """Rows of a file without those that have a problem of these kinds.

    Raises: ConfigError for a kind that does not exist; TaskError when no row is left.
    """
    check_drop(kinds)
    gone = {row for kind in kinds for row in optional.get(kind, ())}
    if not gone:
        return rows
    if len(gone) == len(rows):
        raise TaskError("{file} has no row left when all of these are dropped: drop fewer.", file=shown(name))
    return rows.take([row for row in range(len(rows)) if row not in gone])


class Found(NamedTuple):
    """A row that can be used."""

    line: int
    text: str
    second: str
    label: str
    split: SplitName | None


def read_file(path: Path, options: ReadingConfig = GUESS_ALL) -> Reading:
    """`read_rows` of the file at a path. Raises: TaskError, ConfigError."""
    return read_rows(open_table(Path(path), options=options), options)


def read_rows(table: Table, options: ReadingConfig = GUESS_ALL) -> Reading:
    """Read a table whole, check every row, and keep those that can be used, or a sample of them.

    Args:
        options: which columns hold what; None is guessed. What they say of encoding and the like went into the table.
    Raises: ConfigError for a column that does not exist; TaskError for a table that cannot be read, exceeds a limit,
        or has no row that can be used.
    """
    limits, name = settings(), shown(Path(table.name).name)
    mapping = _mapping(table, options, name)
    check, kept = Checks(table, mapping, limits), Sampler(limits.max_rows)
    _read_all(table, mapping, check, kept, refuses=limits.excess_rows == "refuse")
    if not kept.seen:
        raise _no_rows(name, table.place, check)
    found_rows = kept.rows()
    _check_classes(name, found_rows, mapping, limits)
    file_name, rows, lines = Path(table.name).name, _as_rows(found_rows, mapping), tuple(row.line for row in found_rows)
    (noted,) = optional_problems([NumberedRows(file_name, table.place, rows, lines)])
    counts = {kind: check.counts[kind] + len(noted.rows.get(kind, ())) for kind in PROBLEMS}
    return Reading(
        name=file_name,
        format=table.format,
        encoding=table.encoding,
        dialect=table.dialect,
        columns=table.columns,
        mapping=mapping,
        rows=rows,
        lines=lines,
        problems=in_words(check.problems, noted),
        counts={kind: count for kind, count in counts.items() if count},
        total=check.total,
        sampled=kept.seen > limits.max_rows,
        optional={kind: tuple(having) for kind, having in noted.rows.items()},
    )


def in_words(dropping: Iterable[Problem], noted: Noted) -> tuple[Problem, ...]:
    """The problems of one file in its order, as many as are listed."""
    return fewer(sorted([*dropping, *noted.problems], key=lambda problem: problem.line))


def _read_all(table: Table, mapping: ReadingConfig, check: Checks, kept: Sampler, *, refuses: bool) -> None:
    """Give every row that can be used to the sampler. Raises: TaskError for one too many, where that `refuses`."""
    used = {column for column in (mapping.text, mapping.text_b, mapping.label, mapping.split) if column}
    for row in check.rows(table.records(used)):
        if refuses and kept.seen == kept.size:
            raise TaskError(
                "{file} has more than {most:,} rows ({where} is one too many): give fewer, or raise {setting}.",
                file=shown(Path(table.name).name),
                most=kept.size,
                where=place_words(table.place, row.line),
                setting=f"{PREFIX}MAX_ROWS",
            )
        kept.add(row)


def _mapping(table: Table, options: ReadingConfig, name: str) -> ReadingConfig:
    try:
        guessed = guess_columns(table.columns, table.preview, options)
    except TaskError as error:
        raise TaskError("{file}: {problem}", file=name, problem=error) from None
    except ConfigError as error:
        error.message = Message("{file}: {problem}", file=name, problem=error)
        raise
    dialect = table.dialect._asdict() if table.dialect else dict.fromkeys(Dialect._fields)
    facts = {"encoding": table.encoding, "header": table.header} | dialect
    return guessed.model_copy(update=facts)


def _as_rows(found: Sequence[Found], mapping: ReadingConfig) -> Rows:
    return Rows(
        tuple(row.text for row in found),
        tuple(row.label for row in found),
        tuple(row.second for row in found) if mapping.text_b else None,
        tuple(row.split or "train" for row in found) if mapping.split else None,
        mapping.kind or "classes",
    )


def _check_classes(name: str, rows: Sequence[Found], mapping: ReadingConfig, limits: Settings) -> None:
    classes = len({row.label for row in rows}) if mapping.kind == "classes" else 0
    if classes > limits.max_classes:
        raise TaskError(
            "{file} has {count:,} different labels in the column {column} and at most {most:,} are learned: check "
            "which column holds the labels, or raise {setting}.",
            file=name,
            count=classes,
            column=shown(mapping.label),
            most=limits.max_classes,
            setting=f"{PREFIX}MAX_CLASSES",
        )


class Checks:
    """What drops rows, one row after the other."""

    def __init__(self, table: Table, mapping: ReadingConfig, limits: Settings) -> None:
        self.total = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[Problem] = []
        # Of each kind, the line of the first and what is wrong there.
        self.firsts: dict[str, tuple[int, Message]] = {}
        self._table = table
        self._width = len(table.columns)
        rules = Rules(mapping, limits.max_text_chars, limits.max_label_chars)
        checks = {kind.name: kind.check(rules) for kind in PROBLEMS.values() if kind.check is not None}
        self._checks = [(name, check) for name, check in checks.items() if check is not None]
        place = {column: i for i, column in enumerate(table.columns)}
        self._text = place[mapping.text or ""]
        self._label = place[mapping.label or ""]
        self._second = place.get(mapping.text_b or "")
        self._split = place.get(mapping.split or "")

    def rows(self, records: Iterable[Record]) -> Iterator[Found]:
        """The records that can be used, as rows; each of the others is one problem more."""
        for line, fields in records:
            self.total += 1
            found = self._row(line, fields)
            if isinstance(found, Found):
                yield found
                continue
            kind, said = found
            self.counts[kind] += 1
            self.firsts.setdefault(kind, (line, said))
            if self.counts[kind] <= PROBLEMS_LISTED:
                where = place_words(self._table.place, line, begins=True)
                # Translators: a clause on what is wrong with a row, with the full stop that ends a sentence.
                message = Message("{clause}.", clause=said.fill(where=where))
                self.problems.append(Problem(kind, line, message, Path(self._table.name).name))

    def _row(self, line: int, fields: Sequence[str]) -> Found | tuple[str, Message]:
        """A row, or the kind of its problem and what is wrong with it."""
        if len(fields) != self._width:
            return "fields", fields.reason if isinstance(fields, Unread) else self._unfit(fields)
        text, label = fields[self._text].strip(), fields[self._label].strip()
        second = None if self._second is None else fields[self._second].strip()
        split = None if self._split is None else fields[self._split].strip()
        for kind, check in self._checks:
            if (said := check(text, second, label, split)) is not None:
                return kind, said
        return Found(line, text, second or "", label, None if split is None else SPLITS[split.casefold()])

    def _unfit(self, fields: Sequence[str]) -> Message:
        count, lines = (
            ngettext("{count} field", "{count} fields", len(fields)),
            1 + sum(field.count("\n") for field in fields),
        )
        if lines > 1:
            return Message(
                "{where} has {fields}, over {lines:,} lines, where there are {columns:,} columns",
                fields=count,
                lines=lines,
                columns=self._width,
            )
        return Message("{where} has {fields} where there are {columns:,} columns", fields=count, columns=self._width)


def _no_rows(name: str, unit: str, check: Checks) -> TaskError:
    if not check.total:
        return TaskError("{file} has columns and no rows: add rows with a text and a label.", file=name)
    kind, count = check.counts.most_common(1)[0]
    line, said = check.firsts[kind]
    return TaskError(
        "{file} has no row that can be used; of {total:,}, {count:,} are {kind} ({first}).",
        file=name,
        total=check.total,
        count=count,
        kind=Message(PROBLEMS[kind].label),
        first=said.fill(where=place_words(unit, line)),
    )


class Sampler:
    """The first rows that fit, and from then on a uniform sample of all rows so far (Li 1994, algorithm L)."""

    def __init__(self, size: int) -> None:
        self.seen = 0
        self.size = size
        self._rows: list[Found] = []
        self._random = random.Random(SAMPLE_SEED)  # noqa: S311 a sample, not a secret
        self._weight = 1.0
        self._next = size
        self._skip()

    def add(self, row: Found) -> None:
        if self.seen < self.size:
            self._rows.append(row)
        elif self.seen == self._next:
            self._rows[int(self._random.random() * self.size)] = row
            self._next += 1
            self._skip()
        self.seen += 1

    def rows(self) -> list[Found]:
        """In the order of the file."""
        return sorted(self._rows, key=attrgetter("line"))

    def _skip(self) -> None:
        self._weight *= math.exp(math.log(1.0 - self._random.random()) / self.size)
        self._next += math.floor(math.log(1.0 - self._random.random()) / math.log1p(-self._weight))
