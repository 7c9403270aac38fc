"""Rows of CSV and TSV files, read by Python's `csv` module in the dialect that gives the most regular rows.

Measured on the 49 dialects of `tests/core/tasks/files/test_dialects.py`: this module reads 49 correctly, DuckDB 2.0 46,
clevercsv 43, pandas 27. A single stray quote in a file hides all others from DuckDB's sniffer.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import NamedTuple

from core.config import ReadingConfig
from core.errors import TaskError
from core.messages import Message
from core.tasks.rows import place_words

DELIMITERS = (",", "\t", ";", "|")
FIELD_MAX_CHARS = 2**20
# An unclosed quote swallows the lines after it. Up to this number the row counts as damaged, beyond it the file does.
SWALLOWED_LINES_MAX = 20

# Rows that a dialect is judged by. Tiny rows in up to 48 dialects would take many seconds.
SAMPLE_ROWS = 5_000
# Dialects with at least this share of regular lines are compared by their unread quotation marks.
REGULAR_SHARE = 0.98
MARKED = re.compile(r"""^"|"\ *$|\\"|^\ +["']""")

csv.field_size_limit(max(csv.field_size_limit(), FIELD_MAX_CHARS))


class UnreadableRow(tuple[str, ...]):
    """An unreadable row: no fields, and the reason."""

    reason: Message

    @classmethod
    def because(cls, reason: Message) -> UnreadableRow:
        row = cls()
        row.reason = reason
        return row


Record = tuple[int, tuple[str, ...]]

STRAY_QUOTE = UnreadableRow.because(Message("{where} has a misplaced quotation mark"))
LONG_FIELD = UnreadableRow.because(
    Message("{where} has a field of more than {most:,} characters", most=FIELD_MAX_CHARS)
)


class Dialect(NamedTuple):
    """The characters that separate and enclose fields.

    Attributes:
        quote: encloses a field that may hold delimiters and line breaks; "" if quotation marks are plain characters.
        escape: makes the next character part of the text; "" for none. A quotation mark within quotes may be doubled in
            any case.
        skip_initial_space: ignore spaces after a delimiter, so that a quotation mark may follow them.
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""
    skip_initial_space: bool = False


def find_dialect(sample: str, given: ReadingConfig, *, whole: bool) -> Dialect:
    """Return the dialect that reads most lines of a file's beginning as rows of equal length.

    If several dialects do so for almost all lines, the one with the fewest unread quotation marks at the ends of fields
    and rows is returned; among equals, the simplest.

    Args:
        given: settings that are not detected.
        whole: True if the sample is the whole file, so that its last row is complete.
    """
    quotes = ['"', *([""] if '"' in sample else []), *(["'"] if "'" in sample else [])]
    escaped = re.search(r"""\\["',;|\t]""", sample)
    spaced = re.search(r"""(?:^|[,;|\t])\ +["']""", sample, re.MULTILINE)
    dialects = [
        Dialect(*parts)
        for parts in product(
            [given.delimiter] if given.delimiter else [mark for mark in DELIMITERS if mark in sample] or [","],
            quotes if given.quote is None else [given.quote],
            ["", "\\"] if escaped and given.escape is None else [given.escape or ""],
            [False, True] if spaced and given.skip_initial_space is None else [bool(given.skip_initial_space)],
        )
    ]
    return max(dialects, key=lambda dialect: _fit(sample, dialect, whole=whole, settled=given.quote is not None))


def _fit(sample: str, dialect: Dialect, *, whole: bool, settled: bool) -> tuple[float, int, float]:
    """Compute a sort key: the capped share of regular lines, the negated number of unread marks, the share.

    Args:
        settled: True if the quotation mark is given, so that apostrophes around fields do not count.
    """
    rows = list(islice(_rows(io.StringIO(sample, newline=""), dialect), SAMPLE_ROWS))
    if not whole and len(rows) > 1:
        rows.pop()
    lines: Counter[int] = Counter()
    left = single = 0
    for start, end, fields in rows:
        lines[len(fields)] += end - start
        left += isinstance(fields, UnreadableRow) or sum(MARKED.search(field) is not None for field in fields)
        single += any(len(field) > 1 and field[0] == field[-1] == "'" for field in fields)
    if not settled and 2 * single >= len(rows):  # occasional apostrophes belong to the text
        left += single
    regular = max((count for length, count in lines.items() if length > 1), default=0) / max(1, lines.total())
    return min(regular, REGULAR_SHARE), -left, regular


def records(lines: Iterable[str], dialect: Dialect) -> Iterator[Record]:
    """Yield each row with its first line, from 1. Blank lines are skipped, and an unreadable row is `UnreadableRow`.

    Args:
        lines: lines of a file opened with newline="".
    Raises: TaskError, without the name of the file, for a quote that swallows many lines.
    """
    for start, end, fields in _rows(lines, dialect):
        if isinstance(fields, UnreadableRow) and end - start > SWALLOWED_LINES_MAX:
            raise TaskError(
                "{where} has a quotation mark that is not closed in its row: close it, or write {mark}{mark} for a "
                "quotation mark within a quoted text.",
                where=place_words("line", start),
                mark=dialect.quote or '"',
            )
        yield start, fields


def _rows(lines: Iterable[str], dialect: Dialect) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield each row with its first line, from 1, and the line after its last."""
    reader = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        escapechar=dialect.escape or None,
        skipinitialspace=dialect.skip_initial_space,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        strict=True,
    )
    start, ended = 1, False
    while not ended:
        try:
            for fields in reader:
                if len(fields) > 1 or (fields and fields[0].strip()):
                    yield start, reader.line_num + 1, tuple(fields)
                start = reader.line_num + 1
            ended = True
        except csv.Error as error:
            yield start, reader.line_num + 1, LONG_FIELD if "field limit" in str(error) else STRAY_QUOTE
            ended = start > reader.line_num  # no line was read, so this is the end
            start = reader.line_num + 1
