"""From a table to rows that can be learned from, with everything that stands against the others, row by row."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from core.config import ReadingConfig
from core.errors import ConfigError, TaskError, shown
from core.settings import PREFIX, Settings, settings
from core.tasks.files.columns import GUESS_ALL, SPLITS, guess_columns
from core.tasks.files.delimited import DELIMITER_NAMES, Record
from core.tasks.files.encodings import ENCODING_LABELS
from core.tasks.files.problems import PROBLEMS, Problem, is_formula
from core.tasks.files.tables import Format, Table, open_table
from core.tasks.rows import Kind, Rows, SplitName

PROBLEMS_LISTED = 10_000
# One sample for everybody, so that two people who read the same file have the same rows.
SAMPLE_SEED = 20210111
DIGEST_BYTES = 16
# A class, or a similarity as a number.
Label = str | float | None


@dataclass(frozen=True)
class Reading:
    """What was read of a file, and what was not.

    Attributes:
        encoding, delimiter: None where there is none.
        mapping: every field of the options filled in, as far as it says something about such a file.
        rows: those that can be learned from, in the order of the file.
        lines: where each of them begins, as people count lines (Parquet: rows).
        problems: in the order of the file, the first 10,000.
        counts: how many of each kind there are; a row has at most one of those that drop it.
        total: rows in the file, with those that cannot be used.
        sampled: `rows` is a seeded sample of those that can be used.
        optional: by kind of problem, which of `rows` have it and may stay.
    """

    name: str
    format: Format
    encoding: str | None
    delimiter: str | None
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
        for kind in kinds:
            if kind not in PROBLEMS:
                raise ConfigError("drop", kind, f"choose from {', '.join(PROBLEMS)}.")
        gone = {row for kind in kinds for row in self.optional.get(kind, ())}
        if not gone:
            return self.rows
        if len(gone) == len(self.rows):
            raise TaskError(f"{shown(self.name)} has no row left when all of these are dropped: drop fewer.")
        return self.rows.take([row for row in range(len(self.rows)) if row not in gone])

    @property
    def dropped(self) -> int:
        """How many rows of the file cannot be used."""
        return sum(count for kind, count in self.counts.items() if PROBLEMS[kind].must_drop)

    @property
    def source_sentence(self) -> str:
        """What was read, in a line: `reviews.csv: CSV, UTF-8, comma; 1,204 rows`."""
        parts = [
            self.format,
            ENCODING_LABELS.get(self.encoding or "", ""),
            DELIMITER_NAMES.get(self.delimiter or "", ""),
        ]
        count = f"{len(self.rows):,} row{'s' * (len(self.rows) != 1)}"
        if self.sampled:
            count = f"a sample of {len(self.rows):,} of {self.total:,} rows"
        elif self.total > len(self.rows):
            count = f"{len(self.rows):,} of {self.total:,} rows"
        return f"{' '.join(self.name.split())}: {', '.join(part for part in parts if part)}; {count}"


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
        raise TaskError(_no_rows(name, check))
    found_rows = kept.rows()
    _check_classes(name, found_rows, mapping, limits)
    optional, notes = optional_problems(found_rows, table.place, mapping.kind or "classes")
    counts = {kind: check.counts[kind] + len(optional.get(kind, ())) for kind in PROBLEMS}
    problems = sorted([*check.problems, *notes], key=lambda problem: problem.line)[:PROBLEMS_LISTED]
    return Reading(
        name=Path(table.name).name,
        format=table.format,
        encoding=table.encoding,
        delimiter=table.delimiter,
        columns=table.columns,
        mapping=mapping,
        rows=_as_rows(found_rows, mapping),
        lines=tuple(row.line for row in found_rows),
        problems=tuple(problems),
        counts={kind: count for kind, count in counts.items() if count},
        total=check.total,
        sampled=kept.seen > limits.max_rows,
        optional=optional,
    )


def _read_all(table: Table, mapping: ReadingConfig, check: Checks, kept: Sampler, *, refuses: bool) -> None:
    """Give every row that can be used to the sampler. Raises: TaskError for one too many, where that `refuses`."""
    used = {column for column in (mapping.text, mapping.text_b, mapping.label, mapping.split) if column}
    for row in check.rows(table.records(used)):
        if refuses and kept.seen == kept.size:
            name, place = shown(Path(table.name).name), f"{table.place} {row.line:,}"
            raise TaskError(
                f"{name} has more than {kept.size:,} rows ({place} is one too many): "
                f"give fewer, or raise {PREFIX}MAX_ROWS."
            )
        kept.add(row)


def _mapping(table: Table, options: ReadingConfig, name: str) -> ReadingConfig:
    try:
        guessed = guess_columns(table.columns, table.preview, options)
    except TaskError as error:
        raise TaskError(f"{name}: {error}") from None
    facts = {"encoding": table.encoding, "delimiter": table.delimiter, "header": table.header}
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
            f"{name} has {classes:,} different labels in the column {shown(mapping.label)} and at most "
            f"{limits.max_classes:,} are learned: check which column holds the labels, or raise {PREFIX}MAX_CLASSES."
        )


class Checks:
    """What drops rows, one row after the other."""

    def __init__(self, table: Table, mapping: ReadingConfig, limits: Settings) -> None:
        self.total = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self._table, self._mapping, self._limits = table, mapping, limits
        self._width = len(table.columns)
        place = {column: i for i, column in enumerate(table.columns)}
        self._text = place[mapping.text or ""]
        self._label = place[mapping.label or ""]
        self._second = place.get(mapping.text_b or "")
        self._split = place.get(mapping.split or "")

    def rows(self, records: Iterable[Record]) -> Iterator[Found]:
        """The records that can be used, as rows; each of the others is one problem more."""
        for line, fields in records:
            self.total += 1
            result = self._row(line, fields)
            if isinstance(result, Found):
                yield result
                continue
            kind, message = result
            self.counts[kind] += 1
            if len(self.problems) < PROBLEMS_LISTED:
                self.problems.append(Problem(kind, line, f"{self._table.place.capitalize()} {line:,} {message}."))

    def _row(self, line: int, fields: Sequence[str]) -> Found | tuple[str, str]:
        """A row, or the kind of problem and what to say of it."""
        if len(fields) != self._width:
            return "fields", self._unfit(fields)
        text, label = fields[self._text].strip(), fields[self._label].strip()
        second = "" if self._second is None else fields[self._second].strip()
        if not text:
            return "empty_text", f"has nothing in the column {shown(self._mapping.text)}"
        if not second and self._second is not None:
            return "empty_text", f"has nothing in the column {shown(self._mapping.text_b)}"
        if not label:
            return "empty_label", f"has nothing in the column {shown(self._mapping.label)}"
        if len(text) > self._limits.max_text_chars or len(second) > self._limits.max_text_chars:
            return "long_text", _long("text", max(text, second, key=len), self._limits.max_text_chars)
        if len(label) > self._limits.max_label_chars:
            return "long_label", _long("label", label, self._limits.max_label_chars)
        if self._mapping.kind == "similarity" and score(label) is None:
            return "bad_score", f"has the score {shown(label)}, which is no number"
        if self._split is None:
            return Found(line, text, second, label, None)
        given = fields[self._split].strip()
        split = SPLITS.get(given.casefold())
        if split is None:
            return "bad_split", f"is in the split {shown(given)}, which is none of train, validation and test"
        return Found(line, text, second, label, split)

    def _unfit(self, fields: Sequence[str]) -> str:
        if fields:
            breaks = sum(field.count("\n") for field in fields)
            over = f", over {breaks + 1:,} lines," if breaks else ""
            many = "1 field" if len(fields) == 1 else f"{len(fields):,} fields"
            return f"has {many}{over} where there are {self._width:,} columns"
        if self._table.format == "JSONL":
            return "is not a JSON object"
        return "has a quotation mark in the wrong place"


def _long(what: str, value: str, most: int) -> str:
    return f"has a {what} of {len(value):,} characters and at most {most:,} are read: {shown(value[:most])}"


def _no_rows(name: str, check: Checks) -> str:
    if not check.total:
        return f"{name} has columns and no rows: add rows with a text and a label."
    kind, count = check.counts.most_common(1)[0]
    first = next(problem for problem in check.problems if problem.kind == kind)
    message = first.message[:1].lower() + first.message[1:]
    label = PROBLEMS[kind].label
    return f"{name} has no row that can be used; of {check.total:,}, {count:,} are {label} ({message[:-1]})."


def score(text: str) -> float | None:
    """A finite number as it is written; None for anything else."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class Sampler:
    """The first rows that fit, and from then on a uniform sample of all rows so far (Li 1994, algorithm L)."""

    def __init__(self, size: int) -> None:
        self.seen = 0
        self.size = size
        self._rows: list[tuple[int, Found]] = []
        self._random = random.Random(SAMPLE_SEED)  # noqa: S311 a sample, not a secret
        self._weight = 1.0
        self._next = size
        self._skip()

    def add(self, row: Found) -> None:
        if self.seen < self.size:
            self._rows.append((self.seen, row))
        elif self.seen == self._next:
            self._rows[int(self._random.random() * self.size)] = (self.seen, row)
            self._next += 1
            self._skip()
        self.seen += 1

    def rows(self) -> list[Found]:
        """In the order of the file."""
        return [row for _, row in sorted(self._rows, key=lambda numbered: numbered[0])]

    def _skip(self) -> None:
        self._weight *= math.exp(math.log(1.0 - self._random.random()) / self.size)
        self._next += math.floor(math.log(1.0 - self._random.random()) / math.log1p(-self._weight))


def optional_problems(
    rows: Sequence[Found], place: str, kind: Kind
) -> tuple[dict[str, tuple[int, ...]], list[Problem]]:
    """Repeated rows, texts with two labels and formulas: which rows, by kind, and the first so many in words.

    Texts are the same when they differ in case and white space only; scores when they are the same number.
    """
    where: dict[str, list[int]] = {}
    notes: list[Problem] = []
    labels = [row.label if kind == "classes" else score(row.label) for row in rows]
    repeated = _repeated(rows, labels)
    for row, found in enumerate(rows):
        by_label = repeated.get(row)
        said: dict[str, str] = {}
        if by_label is not None and (first := by_label[labels[row]]) != row:
            said["duplicate"] = f"repeats {place} {rows[first].line:,}: {shown(found.text)}"
        if by_label is not None and len(by_label) > 1:
            other = rows[next(other for label, other in by_label.items() if label != labels[row])]
            said["two_labels"] = (
                f"has the label {shown(found.label)} and {place} {other.line:,} has {shown(other.label)} "
                f"for the same text: {shown(found.text)}"
            )
        cell = next(filter(is_formula, (found.text, found.second, found.label)), None)
        if cell is not None:
            said["formula"] = f"has a cell that a spreadsheet would run: {shown(cell)}"
        for problem, message in said.items():
            where.setdefault(problem, []).append(row)
            if len(notes) < PROBLEMS_LISTED:
                notes.append(Problem(problem, found.line, f"{place.capitalize()} {found.line:,} {message}."))
    return {problem: tuple(found) for problem, found in where.items()}, notes


def _repeated(rows: Sequence[Found], labels: Sequence[Label]) -> dict[int, dict[Label, int]]:
    """For each row whose texts stand in another row too: the first row with each of their labels."""
    alone: dict[bytes, int] = {}
    groups: dict[bytes, dict[Label, int]] = {}
    repeated: dict[int, dict[Label, int]] = {}
    for row, found in enumerate(rows):
        key = _same_text(found)
        first = alone.setdefault(key, row)
        if first == row:
            continue
        if key not in groups:
            groups[key] = repeated[first] = {labels[first]: first}
        groups[key].setdefault(labels[row], row)
        repeated[row] = groups[key]
    return repeated


def _same_text(row: Found) -> bytes:
    """What is equal for rows with the same texts, and short."""
    text = " ".join(row.text.casefold().split())
    second = " ".join(row.second.casefold().split())
    key = f"{len(text)}:{text}{second}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(key, digest_size=DIGEST_BYTES).digest()
