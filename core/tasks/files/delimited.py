"""Lines of CSV and TSV as rows, by the `csv` module: what cannot be read is reported, row by row or in one sentence."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from core.errors import TaskError
from core.messages import Message
from core.tasks.rows import place_words

Record = tuple[int, tuple[str, ...]]

FIELD_MAX_CHARS = 2**24
# A quote that is never closed takes the lines behind it along; a few are a damaged row, many a damaged file.
SWALLOWED_LINES_MAX = 20
# As much of a row as is needed to say which of its fields is open.
OPEN_ROW_LINES = 100

csv.field_size_limit(max(csv.field_size_limit(), FIELD_MAX_CHARS))


class Unread(tuple[str, ...]):
    """The fields of a row that cannot be read: none, and the reason why."""

    reason: Message

    @classmethod
    def because(cls, reason: Message) -> Unread:
        row = cls()
        row.reason = reason
        return row


STRAY_QUOTE = Unread.because(Message("{where} has a quotation mark in the wrong place"))
LONG_FIELD = Unread.because(Message("{where} has a field of more than {most:,} characters", most=FIELD_MAX_CHARS))


class Dialect(NamedTuple):
    """How lines become fields.

    Attributes:
        quote: the character around a field that may hold delimiters and line breaks; "" where there is none, and a
            quotation mark is a character like any other.
        escape: the character that makes the next one part of the text, whatever it is; "" where there is none. A
            quotation mark within quotes may be doubled in any case.
        skip_initial_space: spaces behind a delimiter do not count, so that a quotation mark may follow them.
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""
    skip_initial_space: bool = False


class RowLines:
    """Lines, of which those of the row that is being read are kept."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.kept: list[str] = []
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        keep = self.kept.append
        for line in self._lines:
            keep(line)
            yield line


def records(lines: Iterable[str], dialect: Dialect) -> Iterator[Record]:
    """Rows with the line, from 1, where each begins; blank lines are none, and one that cannot be read is `Unread`.

    Args:
        lines: of a file that was opened with newline="".
    Raises: TaskError, without the name of the file, for a quote that takes many lines along.
    """
    row_lines = RowLines(lines)
    reader = _reader(row_lines, dialect, strict=True)
    kept, before = row_lines.kept, 0
    while True:
        try:
            for row in reader:
                if len(row) > 1 or (row and row[0].strip()):
                    yield before + 1, tuple(row)
                before = reader.line_num
                kept.clear()
            return
        except csv.Error as error:
            if reader.line_num - before > SWALLOWED_LINES_MAX:
                raise _open_quote(before + 1, kept, dialect) from None
            yield before + 1, _unread(error, kept, dialect)
            if before == reader.line_num:  # nothing was read, so nothing will be
                return
            before = reader.line_num
            kept.clear()


def _reader(lines: Iterable[str], dialect: Dialect, *, strict: bool) -> Any:
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        escapechar=dialect.escape or None,
        skipinitialspace=dialect.skip_initial_space,
        quoting=quoting,
        strict=strict,
    )


def _unread(error: csv.Error, lines: Sequence[str], dialect: Dialect) -> Unread:
    """The placeholder of a row that cannot be read."""
    if "field limit" in str(error):
        return LONG_FIELD
    if not dialect.quote or (len(lines) < 2 and "unexpected end of data" not in str(error)):
        return STRAY_QUOTE
    field, taken = _open_field(lines, dialect), len(lines) - 1
    if not taken:
        clause = Message(
            "{where} has a quotation mark in field {field} that is not closed where it should be", field=field
        )
        return Unread.because(clause)
    clause = Message(
        "{where} has a quotation mark in field {field} that is not closed where it should be; {count} line behind it "
        "went with it",
        "{where} has a quotation mark in field {field} that is not closed where it should be; {count} lines behind it "
        "went with it",
        count=taken,
        field=field,
    )
    return Unread.because(clause)


def _open_quote(line: int, lines: Sequence[str], dialect: Dialect) -> TaskError:
    mark, field = dialect.quote or '"', _open_field(lines, dialect)
    return TaskError(
        "{where} has a quotation mark in field {field} that is not closed in its row: close it, or write {mark}{mark} "
        "for a quotation mark within a quoted text.",
        where=place_words("line", line),
        field=field,
        mark=mark,
    )


def _open_field(lines: Sequence[str], dialect: Dialect) -> int:
    """The number, from 1, of the field that takes other lines along, or else of the last one."""
    try:
        row = next(_reader(lines[:OPEN_ROW_LINES], dialect, strict=False), ())
    except csv.Error:  # so long a field that it is not read
        return 1
    breaks = [(field.count("\n") + field.count("\r"), number) for number, field in enumerate(row, 1)]
    return max(breaks, default=(0, 1))[1]


def irregular_rows(lines: Iterable[str], dialect: Dialect) -> float:
    """How many rows have another number of fields than the first; infinite when a quote takes many rows along."""
    width, count = 0, 0
    try:
        for _line, fields in records(lines, dialect):
            width = width or len(fields)
            count += len(fields) != width
    except TaskError:
        return math.inf
    return count


def regularity(sample: str, dialect: Dialect, *, whole: bool) -> float:
    """The share of a sample's lines that lie in rows of the commonest number of fields; 0 when that number is 1."""
    lines: Counter[int] = Counter()
    read = before = 0
    width = 0
    stream = io.StringIO(sample, newline="")
    total = sample.count("\n") + (not sample.endswith("\n"))
    try:
        for line, fields in records(stream, dialect):
            if read:
                lines[width] += line - before
            width, before, read = len(fields), line, read + 1
    except TaskError:
        width, read = 0, read + 1
    if not read:
        return 0.0
    # The last row of a sample that was cut may be anything.
    if whole or read == 1:
        lines[width] += max(1, total + 1 - before)
    widest = [(count, length) for length, count in lines.items() if length > 1]
    return max(widest)[0] / sum(lines.values()) if widest else 0.0
