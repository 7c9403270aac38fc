"""A user's file as a table of texts: CSV, TSV, JSON lines or Parquet, in any detected encoding.

Other files and damaged ones are refused with a one-sentence error.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from core.config import ReadingConfig
from core.errors import TaskError, quote_value
from core.messages import Message
from core.settings import Settings, settings
from core.tasks.files.columns import GUESS_ALL, has_header
from core.tasks.files.delimited import Dialect, Record, find_dialect, records
from core.tasks.files.encodings import Encoding, check_encoding, codec_of, detect_encoding, not_a_table
from core.tasks.files.parquet import parquet_columns, parquet_records
from core.tasks.files.problems import limit_error
from core.tasks.rows import one_line

Format = Literal["CSV", "TSV", "JSONL", "Parquet"]

FORMATS: dict[str, Format] = {
    **dict.fromkeys((".csv", ".txt"), "CSV"),
    ".tsv": "TSV",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSONL"),
    ".parquet": "Parquet",
}
PREVIEW_ROWS = 200
SAMPLE_CHARS = 2**18
COLUMN_MAX_CHARS = 180
MARKUP = (b"<!doctype html", b"<html", b"<?xml", b"%pdf-")
MARKUP_BYTES = 64
NO_OBJECT = Message("{where} is not a JSON object")
# Numbers keep their spelling in the file.
DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True)
class Table:
    """A file: its format, its columns, its first rows, and a function that reads all rows.

    Attributes:
        encoding: None for Parquet.
        dialect: None if the format has none.
        header: whether the first line names the columns; otherwise they are column 1, column 2, …
        preview: at most the first 200 rows.
        records: yields rows with their line (in a Parquet file, their number), from 1. A row may have more or fewer
            fields than there are columns. Raises TaskError for a file that turns out to be damaged.
    """

    name: str
    format: Format
    encoding: Encoding | None
    dialect: Dialect | None
    header: bool
    columns: tuple[str, ...]
    preview: tuple[tuple[str, ...], ...]
    records: Callable[[], Iterable[Record]] = field(repr=False, compare=False)


def open_table(source: Path | bytes, name: str = "", options: ReadingConfig = GUESS_ALL) -> Table:
    """Read a file and detect its format.

    Args:
        source: a path, or the content of the file.
        name: file name of a content. The suffix determines the format.
        options: settings that are not detected.
    Raises: TaskError for a file that is not a table, is too large or is damaged.
    """
    limits, name = settings(), Path(name if isinstance(source, bytes) else source).name
    shown = quote_value(name)
    content = _content(source, shown, limits)
    format_ = FORMATS.get(Path(name).suffix.lower())
    if format_ is None:
        raise TaskError(
            "{file} has none of the suffixes {suffixes}: give a CSV, TSV, JSONL or Parquet file.",
            file=shown,
            suffixes=tuple(FORMATS),
        )
    if format_ == "Parquet":
        return _parquet_table(content, name, limits)
    encoding = options.encoding or detect_encoding(content, shown)
    if content[:MARKUP_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(MARKUP):
        raise not_a_table(shown)
    check_encoding(content, encoding, shown)
    if format_ == "JSONL":
        return _json_table(content, name, encoding, limits)
    return _delimited_table(content, name, encoding, options, limits)


def _content(source: Path | bytes, name: str, limits: Settings) -> bytes:
    """Read a whole file. Raises: TaskError for one that is missing or too large."""
    try:
        if isinstance(source, Path) and not source.is_file():  # a fifo or a device would block or never end
            folder = quote_value(str(source.parent))
            raise TaskError("{file} was not found as a file in {folder}: check the path.", file=name, folder=folder)
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        if size > limits.max_file_mb * 2**20:
            raise limit_error(name, "max_file_mb", limits.max_file_mb)
        return source if isinstance(source, bytes) else source.read_bytes()
    except OSError as error:
        reason = one_line(error)
        raise TaskError("{file} cannot be read ({reason}): check the file.", file=name, reason=reason) from None


def named_columns(cells: Iterable[str], file: str, limits: Settings) -> tuple[str, ...]:
    """Return unique column names, none of them empty or too long. Raises: TaskError for too many."""
    names: list[str] = []
    for place, cell in enumerate(cells, 1):
        if place > limits.max_columns:
            raise limit_error(quote_value(file), "max_columns", limits.max_columns)
        name = base = " ".join(cell.split())[:COLUMN_MAX_CHARS] or f"column {place}"
        number = 1
        while name in names:
            number += 1
            name = f"{base} ({number})"
        names.append(name)
    return tuple(names)


def _open_text(content: bytes, encoding: Encoding) -> io.TextIOWrapper:
    """Open a file as text, with line ends unchanged."""
    return io.TextIOWrapper(io.BytesIO(content), encoding=codec_of(encoding, content), newline="")


def _first_rows(rows: Iterable[Record], count: int = PREVIEW_ROWS) -> tuple[tuple[str, ...], ...]:
    first: list[tuple[str, ...]] = []
    with suppress(TaskError):  # reading all rows raises the error
        for _line, fields in islice(rows, count):
            first.append(() if isinstance(fields, Message) else fields)
    return tuple(first)


def _delimited_table(content: bytes, name: str, encoding: Encoding, options: ReadingConfig, limits: Settings) -> Table:
    shown = quote_value(name)
    sample = _open_text(content, encoding).read(SAMPLE_CHARS)
    if len(sample) == SAMPLE_CHARS:
        sample = sample.rpartition("\n")[0] or sample
    if options.delimiter is None and Path(name).suffix.lower() == ".tsv" and "\t" in sample.partition("\n")[0]:
        options = options.model_copy(update={"delimiter": "\t"})
    dialect = find_dialect(sample, options)
    first = _first_rows(records(_open_text(content, encoding), dialect, shown), PREVIEW_ROWS + 1)
    if not first or not any(first[:1] if options.header else first):
        raise TaskError("{file}, line 1, has a misplaced quotation mark: fix the column names.", file=shown)
    header = options.header
    if header is None:
        asked = {name for name in (options.text, options.text_b, options.label, options.split) if name}
        header = bool(asked & set(first[0])) or has_header(first)  # a requested name makes the row a header
    width = Counter(map(len, first)).most_common(1)[0][0]
    columns = named_columns(first[0] if header else [""] * width, name, limits)

    def read() -> Iterator[Record]:
        return islice(records(_open_text(content, encoding), dialect, shown), int(header), None)

    format_: Format = "TSV" if dialect.delimiter == "\t" else "CSV"
    return Table(name, format_, encoding, dialect, header, columns, first[int(header) :][:PREVIEW_ROWS], read)


def _json_table(content: bytes, name: str, encoding: Encoding, limits: Settings) -> Table:
    """Open a file of JSON lines. The whole file is read, because a key of a late line is a column too."""
    keys: dict[str, None] = {}
    for _line, values in _json_lines(_open_text(content, encoding)):
        keys |= dict.fromkeys(values or {})
        if len(keys) > limits.max_columns:
            break
    columns = named_columns(keys, name, limits)
    if not columns:
        raise TaskError(
            "{file} has no line with a JSON object with values: write one object on each line, without a list around "
            "them.",
            file=quote_value(name),
        )

    def read() -> Iterator[Record]:
        for line, values in _json_lines(_open_text(content, encoding)):
            yield line, NO_OBJECT if values is None else tuple(values.get(key, "") for key in keys)

    return Table(name, "JSONL", encoding, None, True, columns, _first_rows(read()), read)


def _json_lines(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield the number of each line that is not blank, from 1, with the values of its object; None for other lines."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = DECODER.decode(line)
            if not isinstance(found, dict):
                raise ValueError
            texts = {
                key: value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
                for key, value in found.items()
            }
            if "\\u" in line:  # a lone surrogate is not valid text
                json.dumps(texts, ensure_ascii=False).encode()
            yield number, texts
        except (ValueError, RecursionError):
            yield number, None


def _parquet_table(content: bytes, name: str, limits: Settings) -> Table:
    kinds = parquet_columns(content, quote_value(name))
    columns = named_columns(kinds, name, limits)
    read = partial(parquet_records, content, quote_value(name), kinds, limits)
    return Table(name, "Parquet", None, None, True, columns, _first_rows(read()), read)
