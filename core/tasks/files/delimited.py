"""CSV and TSV as people write them: which delimiter, whether quotes mean anything, whether the first line is a header.

`clevercsv` proposes, the `csv` module reads, and a reading that does not give rows of one length is not believed.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from core.errors import TaskError
from core.tasks.files.columns import KNOWN_NAMES, NUMBER, plain_name

Record = tuple[int, tuple[str, ...]]

DELIMITERS = (",", "\t", ";", "|")
DELIMITER_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
FIELD_MAX_CHARS = 2**24
# clevercsv needs no more to see a dialect, and is slow on more, and on long runs without a gap.
SNIFFED_CHARS = 20_000
SLOW_TO_SNIFF = re.compile(r"[^\s,;|]{400}")
# A proposed dialect is believed when so large a share of the rows has the same length.
REGULAR_SHARE = 0.9
# Stray quotes are ignored unless so many of the fields that begin with one also end with one.
ENCLOSED_SHARE = 0.8
# A quote that is never closed takes the lines behind it along; a few are a damaged row, many a damaged file.
SWALLOWED_LINES_MAX = 20
HEADER_MAX_CHARS = 60
HEADER_MAX_WORDS = 5

csv.field_size_limit(max(csv.field_size_limit(), FIELD_MAX_CHARS))


class Unread(tuple[str, ...]):
    """The fields of a row that cannot be read: none, and the reason why."""

    reason: str

    @classmethod
    def because(cls, reason: str) -> Unread:
        row = cls()
        row.reason = reason
        return row


STRAY_QUOTE = Unread.because("has a quotation mark in the wrong place")
LONG_FIELD = Unread.because(f"has a field of more than {FIELD_MAX_CHARS:,} characters")


class Dialect(NamedTuple):
    """How lines become fields; without `quoted`, a quotation mark is a character like any other."""

    delimiter: str
    quoted: bool


def records(lines: Iterable[str], dialect: Dialect) -> Iterator[Record]:
    """Rows with the line, from 1, where each begins; blank lines are none, and one that cannot be read is `Unread`.

    Args:
        lines: of a file that was opened with newline="".
    Raises: TaskError, without the name of the file, for a quote that takes many lines along.
    """
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=dialect.delimiter, quoting=quoting, strict=True)
    before = 0
    while True:
        try:
            for row in reader:
                if len(row) > 1 or (row and row[0].strip()):
                    yield before + 1, tuple(row)
                before = reader.line_num
            return
        except csv.Error as error:
            if reader.line_num - before > SWALLOWED_LINES_MAX:
                raise TaskError(
                    f"line {before + 1:,} has a quotation mark that is not closed in its row ({error}): close it, or "
                    'write "" for a quotation mark within a quoted text.'
                ) from None
            yield before + 1, LONG_FIELD if "field limit" in str(error) else STRAY_QUOTE
            if before == reader.line_num:  # nothing was read, so nothing will be
                return
            before = reader.line_num


def find_dialect(sample: str, *, whole: bool, delimiter: str | None = None, prefers_tabs: bool = False) -> Dialect:
    """The delimiter and the use of quotes of the beginning of a file.

    Args:
        sample: some of its lines; the last row may be cut unless this is the `whole` file.
        delimiter: where it is settled.
        prefers_tabs: believe in tabs where they give regular rows, as the name .tsv does.
    """
    if delimiter is not None:
        return _quoting(sample, delimiter, whole=whole)
    proposed = ["\t"] if prefers_tabs else []
    if (sniffed := _sniffed(sample)) is not None:
        proposed.append(sniffed)
    for candidate in proposed:
        dialect = _quoting(sample, candidate, whole=whole)
        if regularity(sample, dialect, whole=whole) >= REGULAR_SHARE:
            return dialect
    dialects = [_quoting(sample, candidate, whole=whole) for candidate in DELIMITERS]
    best = max(dialects, key=lambda dialect: regularity(sample, dialect, whole=whole))
    if regularity(sample, best, whole=whole) > 0:
        return best
    return Dialect("\t" if prefers_tabs else ",", quoted=True)


def _sniffed(sample: str) -> str | None:
    """What clevercsv takes for the delimiter, if it comes to a decision."""
    sample = _whole_lines(sample[:SNIFFED_CHARS])
    if SLOW_TO_SNIFF.search(sample):
        return None
    from clevercsv.detect import Detector

    try:
        found = Detector().detect(sample, delimiters=list(DELIMITERS))
    except Exception:  # whatever it stumbles over: the other way of finding out does without it
        return None
    return found.delimiter if found is not None and found.delimiter in DELIMITERS else None


def _whole_lines(sample: str) -> str:
    end = sample.rfind("\n")
    return sample[: end + 1] if end > 0 else sample


def _quoting(sample: str, delimiter: str, *, whole: bool) -> Dialect:
    """Quotes mean something, unless the sample speaks against it."""
    return Dialect(delimiter, quoted=quoting_evidence(sample, delimiter, whole=whole) >= 0)


def quoting_evidence(sample: str, delimiter: str, *, whole: bool) -> int:
    """1 where quotes enclose fields: rows fit better with them, or they stand at both ends; -1 where they do not.

    0 where a sample does not show it.
    """
    if '"' not in sample:
        return 0
    quoted, plain = Dialect(delimiter, quoted=True), Dialect(delimiter, quoted=False)
    if _enclosed_share(sample, plain) >= ENCLOSED_SHARE:
        return 1
    gain = regularity(sample, quoted, whole=whole) - regularity(sample, plain, whole=whole)
    return (gain > 0) - (gain < 0)


def _enclosed_share(sample: str, plain: Dialect) -> float:
    """The share of the fields that begin with a quotation mark that also end with one."""
    cells = (cell for _, fields in records(io.StringIO(sample, newline=""), plain) for cell in fields)
    ends = [len(cell) > 1 and cell.endswith('"') for cell in cells if cell.startswith('"')]
    return sum(ends) / len(ends) if ends else 0.0


def irregular_rows(lines: Iterable[str], dialect: Dialect) -> float:
    """How many rows have another number of fields than the first; infinite when a quote takes many rows along."""
    width, count = 0, 0
    try:
        for _, fields in records(lines, dialect):
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


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: known names, or short words above values of another kind."""
    if len(rows) < 2:
        return bool(rows) and any(plain_name(cell) in KNOWN_NAMES for cell in rows[0])
    first = [cell.strip() for cell in rows[0]]
    below = [[row[i].strip() for row in rows[1:] if len(row) > i] for i in range(len(first))]
    named = [plain_name(cell) in KNOWN_NAMES and cell not in values for cell, values in zip(first, below, strict=True)]
    if any(named):
        return True
    if any(NUMBER.fullmatch(cell) for cell in first):
        return False
    if any(cell and cell in values for cell, values in zip(first, below, strict=True)):
        return False  # a value that comes again is a value
    if any(_numbers(values) for values in below):
        return True
    short = all(len(cell) <= HEADER_MAX_CHARS and len(cell.split()) <= HEADER_MAX_WORDS for cell in first)
    longest = max((sum(map(len, values)) / len(values) for values in below if values), default=0.0)
    names = [cell for cell in first if cell]
    return short and len(set(names)) == len(names) and longest > 2 * max(map(len, first))


def _numbers(values: Sequence[str]) -> bool:
    return bool(values) and all(NUMBER.fullmatch(value) for value in values)
