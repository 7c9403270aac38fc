"""A user's file as a table of texts: CSV, TSV, JSON lines or Parquet, in any detected encoding.

Other files are refused with a one-sentence error. Library errors for damaged files are converted to one sentence too.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from pydantic import Field

from core.config import ReadingConfig
from core.errors import TaskError, quote_value
from core.messages import Message
from core.settings import PREFIX, Settings, settings
from core.tasks.files.columns import GUESS_ALL, has_header
from core.tasks.files.delimited import Dialect, Record, UnreadableRow, find_dialect, records
from core.tasks.files.encodings import Encoding, codec_of, detect_encoding, empty_file, refused_encoding
from core.tasks.files.formats import file_family
from core.tasks.files.parquet import open_parquet
from core.tasks.rows import one_line, place_words

Format = Literal["CSV", "TSV", "JSONL", "Parquet"]

PREVIEW_ROWS = 200
PREVIEW_CHARS = 2**11
SAMPLE_CHARS = 2**18
HEAD_BYTES = 2**12
COLUMN_MAX_CHARS = 200
NO_OBJECT = UnreadableRow.because(Message("{where} is not a JSON object"))
# Numbers keep their spelling in the file.
DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True)
class Table:
    """An open file: its format, its columns and its first rows.

    Attributes:
        encoding: None for Parquet.
        dialect: None if the format has none.
        header: whether the first line names the columns; otherwise they are column 1, column 2, …
        preview: at most the first 200 rows, plus any JSON lines with a new key; long cells are cut.
        reader: None for a table that another process has opened.
        unread: columns of a Parquet file that are left out, each with its type.
    """

    name: str
    format: Format
    encoding: Encoding | None
    dialect: Dialect | None
    header: bool
    columns: tuple[str, ...]
    preview: tuple[tuple[str, ...], ...]
    reader: Annotated[Callable[[Collection[int] | None], Iterator[Record]] | None, Field(exclude=True)] = field(
        default=None, repr=False, compare=False
    )
    unread: Mapping[str, str] = field(default_factory=dict)

    def records(self, used: Collection[str] | None = None) -> Iterator[Record]:
        """Yield rows with their line (in a Parquet file, their number), from 1. Only one iteration may run at a time.

        A row may have more or fewer fields than there are columns. An unreadable row is `UnreadableRow`.

        Args:
            used: columns to read (None: all); others may be left empty to save time.
        Raises: TaskError for a file that turns out to be damaged.
        """
        assert self.reader is not None
        return self.reader(None if used is None else {self.columns.index(column) for column in used})

    @property
    def delimiter(self) -> str | None:
        return self.dialect.delimiter if self.dialect else None

    @property
    def place(self) -> str:
        """Return the unit of a record's number, for `place_words`."""
        return "row" if self.format == "Parquet" else "line"


@dataclass(frozen=True)
class File:
    """A file that can be opened repeatedly.

    Attributes:
        source: a path, or a stream of bytes that stays open.
        name: file name, whose suffix determines the format.
    """

    source: Path | BinaryIO
    name: str

    @property
    def shown_name(self) -> str:
        return quote_value(Path(self.name).name)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file, and convert the errors of libraries into one sentence. Raises: TaskError."""
        with _in_words(self.shown_name):
            if not isinstance(self.source, str | Path):
                yield self.source
                return
            path = Path(self.source)
            if not path.is_file():  # a fifo or a device would block or never end
                if path.exists():
                    raise TaskError("{file} is not a file: check the path.", file=self.shown_name)
                raise TaskError(
                    "{file} was not found in {folder}: check the path.",
                    file=self.shown_name,
                    folder=quote_value(str(path.parent)),
                )
            with path.open("rb") as stream:
                yield stream

    @contextmanager
    def text(self, encoding: Encoding) -> Iterator[io.TextIOWrapper]:
        """Open the file as text, with line ends unchanged. Raises: TaskError that names the first undecodable line."""
        with self.opened() as stream:
            text = io.TextIOWrapper(stream, encoding=codec_of(stream, encoding), newline="")
            try:
                yield text
            except UnicodeDecodeError:
                raise refused_encoding(stream, self.shown_name, encoding) from None
            except TaskError as error:
                # Translators: a file and what is wrong in it: 'rows.csv', line 5 has a quotation mark …
                raise TaskError("{file}, {problem}", file=self.shown_name, problem=error) from None
            finally:
                text.detach()  # leaves the stream open


def open_table(source: Path | BinaryIO, name: str | None = None, options: ReadingConfig = GUESS_ALL) -> Table:
    """Open a file and detect how to read it.

    Args:
        source: a path, or a stream of bytes, which stays open and is read from its start.
        name: file name, whose suffix determines the format (None: the file's own).
        options: settings that are not detected.
    Raises: TaskError for a file that is not a table, is too large or is damaged.
    """
    limits = settings()
    file = File(source, name or getattr(source, "name", None) or "file")
    with file.opened() as stream:
        size = stream.seek(0, os.SEEK_END)
        if size > limits.max_file_mb * 2**20:
            raise TaskError(
                "{file} has {size:,.1f} MB, but at most {most:,} MB are read: give fewer rows, or raise {setting}.",
                file=file.shown_name,
                size=size / 2**20,
                most=limits.max_file_mb,
                setting=f"{PREFIX}MAX_FILE_MB",
            )
        if not size:
            raise empty_file(file.shown_name)
        stream.seek(0)
        family = file_family(file.name, file.shown_name, stream.read(HEAD_BYTES))
        if family == "parquet":
            return _parquet_table(file, stream, limits)
        encoding = options.encoding or detect_encoding(stream, file.shown_name)
    if family == "json":
        return _json_table(file, encoding, limits)
    return _delimited_table(file, encoding, options, limits)


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """Convert the errors that libraries raise for damaged files into one sentence."""
    try:
        yield
    except TaskError:
        raise
    except MemoryError:
        raise TaskError(
            "{file} needs more memory than is available: give fewer rows or shorter texts.", file=name
        ) from None
    except OSError as error:
        raise TaskError(
            "{file} cannot be read ({reason}): check the file.", file=name, reason=one_line(error)
        ) from None
    except Exception as error:
        known = isinstance(error, ValueError | csv.Error) or "duckdb" in type(error).__module__
        if not known:
            raise
        raise TaskError(
            "{file} is damaged ({reason}): write the file again.", file=name, reason=one_line(error)
        ) from None


def _check_width(columns: int, name: str, limits: Settings) -> None:
    if columns > limits.max_columns:
        raise TaskError(
            "{file} has {count:,} columns, but at most {most:,} are read: give fewer, or raise {setting}.",
            file=name,
            count=columns,
            most=limits.max_columns,
            setting=f"{PREFIX}MAX_COLUMNS",
        )


def named_columns(cells: Iterable[str]) -> tuple[str, ...]:
    """Return unique column names, none of them empty or too long."""
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


def _delimited_table(file: File, encoding: Encoding, options: ReadingConfig, limits: Settings) -> Table:
    with file.text(encoding) as text:
        sample = text.read(SAMPLE_CHARS)
        whole = not text.read(1)
    if options.delimiter is None and Path(file.name).suffix.lower() == ".tsv" and "\t" in sample.partition("\n")[0]:
        options = options.model_copy(update={"delimiter": "\t"})
    dialect = find_dialect(sample, options, whole=whole)
    first = _first_rows(sample, dialect, whole=whole)
    header = options.header
    if header is None:
        asked = {name for name in (options.text, options.text_b, options.label, options.split) if name}
        header = bool(asked & set(first[0])) or has_header(first)  # a requested name makes the row a header
    width = len(first[0]) if header else Counter(map(len, first)).most_common(1)[0][0]
    _check_width(width, file.shown_name, limits)
    columns = named_columns(first[0] if header else [""] * width)
    if not columns:
        raise TaskError(
            "{file}, line 1, has a misplaced quotation mark: fix the column names.",
            file=file.shown_name,
        )

    def read(used: Collection[int] | None) -> Iterator[Record]:
        with file.text(encoding) as text:
            yield from islice(records(text, dialect), int(header), None)

    format_: Format = "TSV" if dialect.delimiter == "\t" else "CSV"
    preview = tuple(first[int(header) :][:PREVIEW_ROWS])
    return Table(file.name, format_, encoding, dialect, header, columns, preview, read)


def _first_rows(sample: str, dialect: Dialect, *, whole: bool) -> list[tuple[str, ...]]:
    """Return the rows of the preview and one for a header. A cut sample's last row is left out."""
    rows: list[tuple[str, ...]] = []
    with suppress(TaskError):  # reading the whole file raises the error with its line
        for _line, fields in islice(records(io.StringIO(sample, newline=""), dialect), PREVIEW_ROWS + 2):
            rows.append(fields)
    if not whole and 1 < len(rows) < PREVIEW_ROWS + 2:
        rows.pop()
    return rows[: PREVIEW_ROWS + 1] or [()]


def _json_table(file: File, encoding: Encoding, limits: Settings) -> Table:
    """Open a file of JSON lines. The whole file is read, because a key of a late line is a column too."""
    keys: dict[str, None] = {}
    preview: list[dict[str, str]] = []
    first_line = 0
    with file.text(encoding) as text:
        for count, (line, values) in enumerate(_json_lines(text)):
            first_line = first_line or line
            new = (values or {}).keys() - keys
            if new or count < PREVIEW_ROWS:
                preview.append({key: value[:PREVIEW_CHARS] for key, value in (values or {}).items()})
            keys |= dict.fromkeys(values or {})
            if len(keys) > limits.max_columns:
                break
    if not keys:
        raise TaskError(
            "{file}, line {line:,}, is not a JSON object with values: write one object on each line, without a list "
            "around them.",
            file=file.shown_name,
            line=max(1, first_line),
        )
    if len(keys) > limits.max_columns:
        raise TaskError(
            "{file} has more than {most:,} columns ({where} has one too many): give fewer, or raise {setting}.",
            file=file.shown_name,
            most=limits.max_columns,
            where=place_words("line", line),
            setting=f"{PREFIX}MAX_COLUMNS",
        )

    def read(used: Collection[int] | None) -> Iterator[Record]:
        with file.text(encoding) as text:
            for line, values in _json_lines(text):
                yield line, NO_OBJECT if values is None else tuple(values.get(key, "") for key in keys)

    rows = tuple(tuple(values.get(key, "") for key in keys) for values in preview)
    return Table(file.name, "JSONL", encoding, None, True, named_columns(keys), rows, read)


def _json_lines(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield the number of each line that is not blank, from 1, with the values of its object; None for other lines."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _json_texts(line)


def _json_texts(line: str) -> dict[str, str] | None:
    try:
        found = DECODER.decode(line)
        if not isinstance(found, dict):
            return None
        if any(isinstance(value, list | dict) for value in found.values()):
            # Within nested values, numbers stay distinct from texts.
            found |= {key: value for key, value in json.loads(line).items() if isinstance(value, list | dict)}
        if "\\u" in line:  # a lone surrogate is not valid text
            json.dumps(found, ensure_ascii=False).encode()
        return {
            key: value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
            for key, value in found.items()
        }
    except (ValueError, RecursionError):
        return None


def _parquet_table(file: File, stream: BinaryIO, limits: Settings) -> Table:
    with open_parquet(stream) as parquet:
        _check_width(len(parquet.columns), file.shown_name, limits)
        parquet.check_size(file.shown_name, limits)
        first = islice(parquet.records(file.shown_name, limits, None), PREVIEW_ROWS)
        preview = tuple(tuple(cell[:PREVIEW_CHARS] for cell in fields) for _number, fields in first)
        columns, unread = named_columns(parquet.columns), parquet.unread

    def read(used: Collection[int] | None) -> Iterator[Record]:
        with file.opened() as again, open_parquet(again) as parquet:
            yield from parquet.records(file.shown_name, limits, used)

    return Table(file.name, "Parquet", None, None, True, columns, preview, read, unread)
