"""A file of people as a table of texts: CSV, TSV, JSON lines or Parquet, whatever its encoding.

What is not such a file is refused in one sentence, and so is everything that a damaged file makes a library raise.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from core.config import ReadingConfig
from core.errors import TaskError, shown
from core.messages import Message
from core.settings import PREFIX, Settings, settings
from core.tasks.files.columns import GUESS_ALL
from core.tasks.files.delimited import Dialect, Record, Unread, irregular_rows, records
from core.tasks.files.dialects import alternatives, find_dialect, is_unsure
from core.tasks.files.encodings import (
    Encoding,
    chunks,
    codec_of,
    detect_encoding,
    empty_file,
    refused_encoding,
    undecodable_line,
)
from core.tasks.files.headers import has_header
from core.tasks.files.json_lines import all_keys, json_lines
from core.tasks.files.kinds import file_family
from core.tasks.files.parquet import check_size, column_names, parquet_records
from core.tasks.files.row_groups import open_parquet
from core.tasks.rows import one_line, place_words

Format = Literal["CSV", "TSV", "JSONL", "Parquet"]

PREVIEW_ROWS = 200
PREVIEW_CHARS = 2**11
SAMPLE_CHARS = 2**16
HEAD_BYTES = 2**12
COLUMN_MAX_CHARS = 200
NO_OBJECT = Unread.because(Message("{where} is not a JSON object"))


@dataclass(frozen=True)
class Table:
    """A file that was opened: what it is, its columns and its first rows.

    Attributes:
        encoding: None for Parquet.
        dialect: how lines become fields; None where the format says so.
        header: whether the first line names the columns; where not, they are column 1, column 2, …
        preview: the first rows, at most 200, and of JSON lines those where another key comes up; long cells are cut.
    """

    name: str
    format: Format
    encoding: Encoding | None
    dialect: Dialect | None
    header: bool
    columns: tuple[str, ...]
    preview: tuple[tuple[str, ...], ...]
    reader: Callable[[Collection[int] | None], Iterator[Record]] = field(repr=False, compare=False)

    def records(self, used: Collection[str] | None = None) -> Iterator[Record]:
        """Rows with their line as people count (Parquet: the row), one reading at a time.

        A row may have more or fewer fields than there are columns, and is `Unread` when it cannot be read at all.

        Args:
            used: columns that matter (None: all); others may be left empty to save time.
        Raises: TaskError for a file that turns out to be damaged.
        """
        return self.reader(None if used is None else {self.columns.index(column) for column in used})

    @property
    def delimiter(self) -> str | None:
        """None where there is none."""
        return self.dialect.delimiter if self.dialect else None

    @property
    def place(self) -> str:
        """What a record's number counts, as `place_words` takes it."""
        return "row" if self.format == "Parquet" else "line"


def open_table(source: Path | BinaryIO, name: str | None = None, options: ReadingConfig = GUESS_ALL) -> Table:
    """Open a file and find out how to read it.

    Args:
        source: a path, or a file that was opened for reading bytes, which stays open and is read from its start.
        name: what to call it, with the suffix that says what it is (None: its own name).
        options: what is settled already.
    Raises: TaskError for what is no table, is too large or is damaged.
    """
    limits = settings()
    name = name or getattr(source, "name", None) or "file"
    shown_name = shown(Path(name).name)
    with in_words(shown_name), opened(source, shown_name) as stream:
        _check_size(stream, shown_name, limits)
        stream.seek(0)
        family = file_family(name, shown_name, stream.read(HEAD_BYTES))
        if family == "parquet":
            return _parquet_table(source, stream, name, limits)
        if family == "json":
            return _json_table(source, stream, name, options, limits)
        return _delimited_table(source, stream, name, options, limits)


@contextmanager
def opened(source: Path | BinaryIO, name: str) -> Iterator[BinaryIO]:
    """The bytes of a file; a path is opened and closed, an open file is left open."""
    if not isinstance(source, str | Path):
        yield source
        return
    path = Path(source)
    if not path.is_file():  # a fifo or a device would block or never end
        if path.exists():
            raise TaskError("{file} is not a file: check the path.", file=name)
        raise TaskError("{file} was not found in {folder}: check the path.", file=name, folder=shown(str(path.parent)))
    with path.open("rb") as stream:
        yield stream


@contextmanager
def in_words(name: str) -> Iterator[None]:
    """Turn what libraries raise for damaged files into one sentence."""
    try:
        yield
    except TaskError:
        raise
    except MemoryError:
        raise TaskError(
            "{file} needs more memory than there is: give fewer rows, or shorter texts.", file=name
        ) from None
    except OSError as error:
        if str(error).startswith("Not yet implemented"):  # Arrow's words for what it lacks
            raise TaskError(
                "{file} is stored in a way that is not read ({reason}): write it again in an encoding that every "
                "reader knows, such as PLAIN.",
                file=name,
                reason=one_line(error),
            ) from None
        raise TaskError(
            "{file} cannot be read ({reason}): check the file.", file=name, reason=one_line(error)
        ) from None
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
        csv.Error,
    ) as error:
        raise _damaged(name, error) from None
    except Exception as error:
        # Arrow's errors are of classes of its own, which are not imported for files that need no Arrow.
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> TaskError:
    return TaskError("{file} is damaged ({reason}): write the file again.", file=name, reason=one_line(error))


def _check_size(stream: BinaryIO, name: str, limits: Settings) -> None:
    size = stream.seek(0, os.SEEK_END)
    if size > limits.max_file_mb * 2**20:
        raise TaskError(
            "{file} has {size:,.1f} MB and at most {most:,} MB are read: give fewer rows, or raise {setting}.",
            file=name,
            size=size / 2**20,
            most=limits.max_file_mb,
            setting=f"{PREFIX}MAX_FILE_MB",
        )
    if not size:
        raise empty_file(name)


def _check_width(columns: int, name: str, limits: Settings) -> None:
    if columns > limits.max_columns:
        raise TaskError(
            "{file} has {count:,} columns and at most {most:,} are read: give fewer, or raise {setting}.",
            file=name,
            count=columns,
            most=limits.max_columns,
            setting=f"{PREFIX}MAX_COLUMNS",
        )


def named_columns(cells: Iterable[str]) -> tuple[str, ...]:
    """Names that are all there, all different and none too long."""
    names: list[str] = []
    taken: set[str] = set()
    again: defaultdict[str, int] = defaultdict(lambda: 1)
    for place, cell in enumerate(cells, 1):
        base = " ".join(cell.split())
        base = f"{base[: COLUMN_MAX_CHARS - 20]}…" if len(base) > COLUMN_MAX_CHARS - 20 else base or f"column {place}"
        name = base
        while name in taken:
            again[base] += 1
            name = f"{base} ({again[base]})"
        names.append(name)
        taken.add(name)
    return tuple(names)


@contextmanager
def _text(source: Path | BinaryIO, name: str, encoding: Encoding) -> Iterator[io.TextIOWrapper]:
    """A file as text, line ends as they are. Raises: TaskError naming the line that is in another encoding."""
    with in_words(name), opened(source, name) as stream:
        codec = codec_of(stream, encoding)
        text = io.TextIOWrapper(stream, encoding=codec, newline="")
        try:
            yield text
        except UnicodeDecodeError:
            codec_of(stream, encoding)
            raise refused_encoding(name, encoding, undecodable_line(stream, codec)) from None
        except TaskError as error:
            # Translators: a file and what is wrong in it: 'rows.csv', line 5 has a quotation mark …
            raise TaskError("{file}, {problem}", file=name, problem=error) from None
        finally:
            text.detach()  # lets go of the bytes without closing them


def _delimited_table(
    source: Path | BinaryIO, stream: BinaryIO, name: str, options: ReadingConfig, limits: Settings
) -> Table:
    shown_name = shown(Path(name).name)
    encoding = options.encoding or detect_encoding(stream, shown_name)
    with _text(source, shown_name, encoding) as text:
        sample, whole = _sample(text)
        prefers_tabs = Path(name).suffix.lower() == ".tsv"
        dialect = find_dialect(sample, whole=whole, given=options, prefers_tabs=prefers_tabs)
    if is_unsure(sample, dialect, whole=whole, given=options):
        dialect = _seen_whole(source, shown_name, encoding, dialect, options)
    first = _first_rows(sample, dialect, whole=whole)
    header = options.header
    if header is None:
        asked = {name for name in (options.text, options.text_b, options.label, options.split) if name}
        header = bool(asked & set(first[0])) or has_header(first)  # what somebody calls a column is its name
    width = len(first[0]) if header else Counter(map(len, first)).most_common(1)[0][0]
    _check_width(width, shown_name, limits)
    columns = named_columns(first[0] if header else [""] * width)
    if not columns:
        raise TaskError(
            "{file}, line 1, has a quotation mark in the wrong place: fix the names of the columns.", file=shown_name
        )

    def read(used: Collection[int] | None) -> Iterator[Record]:
        with _text(source, shown_name, encoding) as text:
            yield from islice(records(text, dialect), int(header), None)

    format_: Format = "TSV" if dialect.delimiter == "\t" else "CSV"
    preview = tuple(first[int(header) :][:PREVIEW_ROWS])
    return Table(name, format_, encoding, dialect, header, columns, preview, read)


def _seen_whole(
    source: Path | BinaryIO, name: str, encoding: Encoding, dialect: Dialect, options: ReadingConfig
) -> Dialect:
    """What quotes mean in a file whose beginning does not show it: that with which most rows fit."""
    held = _held(source, name, ['"', "'", '\\"', f'{dialect.delimiter} "'])
    if dialect.quote not in held:
        return dialect

    def misfits(candidate: Dialect) -> float:
        with _text(source, name, encoding) as text:
            return irregular_rows(text, candidate)

    fewest = misfits(dialect)
    for other in alternatives(dialect, options) if fewest else ():
        if not held.issuperset(_marks_of(other)):
            continue  # it would read the same rows
        if (count := misfits(other)) < fewest:
            dialect, fewest = other, count
    return dialect


def _marks_of(dialect: Dialect) -> list[str]:
    """What has to be in a file for an escape, or for spaces in front of quotes, to matter."""
    escaped = [dialect.escape + dialect.quote] if dialect.escape and dialect.quote else []
    return escaped + ([f"{dialect.delimiter} {dialect.quote}"] if dialect.skip_initial_space and dialect.quote else [])


def _held(source: Path | BinaryIO, name: str, marks: Iterable[str]) -> set[str]:
    """Which of these characters are in a file, as far as its bytes show them."""
    wanted = {mark.encode(): mark for mark in marks}
    held: set[str] = set()
    with opened(source, name) as stream:
        for chunk in chunks(stream):
            held |= {mark for raw, mark in wanted.items() if mark not in held and raw in chunk}
    return held


def _sample(text: TextIO) -> tuple[str, bool]:
    """The beginning of a file, and whether that is all of it."""
    sample = text.read(SAMPLE_CHARS)
    return sample, not text.read(1)


def _first_rows(sample: str, dialect: Dialect, *, whole: bool) -> list[tuple[str, ...]]:
    """The rows of the preview and one for a header; the last row of a sample that was cut is left out."""
    rows: list[tuple[str, ...]] = []
    with suppress(TaskError):  # reading all of it will say where
        for _line, fields in islice(records(io.StringIO(sample, newline=""), dialect), PREVIEW_ROWS + 2):
            rows.append(fields)
    if not whole and 1 < len(rows) < PREVIEW_ROWS + 2:
        rows.pop()
    return rows[: PREVIEW_ROWS + 1] or [()]


def _json_table(
    source: Path | BinaryIO, stream: BinaryIO, name: str, options: ReadingConfig, limits: Settings
) -> Table:
    shown_name = shown(Path(name).name)
    encoding = options.encoding or detect_encoding(stream, shown_name)
    with _text(source, shown_name, encoding) as text:
        found = all_keys(json_lines(text), limits.max_columns, PREVIEW_ROWS, PREVIEW_CHARS)
    keys = list(found.first_lines)
    if not keys:
        raise TaskError(
            "{file}, line {line:,}, is not a JSON object with values: write one object on each line, without a list "
            "around them.",
            file=shown_name,
            line=found.line,
        )
    if len(keys) > limits.max_columns:
        line = list(found.first_lines.values())[limits.max_columns]
        raise TaskError(
            "{file} has more than {most:,} columns ({where} has one too many): give fewer, or raise {setting}.",
            file=shown_name,
            most=limits.max_columns,
            where=place_words("line", line),
            setting=f"{PREFIX}MAX_COLUMNS",
        )

    def read(used: Collection[int] | None) -> Iterator[Record]:
        wanted = [key if used is None or place in used else None for place, key in enumerate(keys)]
        with _text(source, shown_name, encoding) as text:
            for line in json_lines(text):
                yield line.number, NO_OBJECT if line.values is None else line.texts(wanted)

    preview = tuple(tuple(values.get(key, "") for key in keys) for values in found.preview)
    return Table(name, "JSONL", encoding, None, True, named_columns(keys), preview, read)


def _parquet_table(source: Path | BinaryIO, stream: BinaryIO, name: str, limits: Settings) -> Table:
    shown_name, max_mb = shown(Path(name).name), limits.max_file_mb
    file = open_parquet(stream)
    names = column_names(file)
    _check_width(len(names), shown_name, limits)
    check_size(file, shown_name, max_mb)
    twice = next((column for column, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise TaskError("{file} has more than one column {column}: keep one.", file=shown_name, column=shown(twice))

    def read(used: Collection[int] | None) -> Iterator[Record]:
        with in_words(shown_name), opened(source, shown_name) as again:
            yield from parquet_records(again, shown_name, max_mb, used)

    first = islice(parquet_records(stream, shown_name, max_mb, None, batch_rows=PREVIEW_ROWS), PREVIEW_ROWS)
    preview = tuple(tuple(cell[:PREVIEW_CHARS] for cell in fields) for _number, fields in first)
    return Table(name, "Parquet", None, None, True, named_columns(names), preview, read)
