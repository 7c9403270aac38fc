"""Tables of Parquet files: every value as the text that a person would write for it.

A few kilobytes can hold terabytes, as a column's dictionary holds a value once for all its rows. So texts are read
as dictionaries where Arrow can, a few rows at a time where they unpack to more than their pages, and other values only
where each takes a few bytes; all become Python's in pieces of bounded size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, BinaryIO

from core.errors import TaskError, shown
from core.messages import N_, Message, _
from core.settings import PREFIX
from core.tasks.files.columns import UNREAD_CELLS
from core.tasks.files.delimited import FIELD_MAX_CHARS, LONG_FIELD, Record
from core.tasks.files.row_groups import batches, is_text, open_parquet

BATCH_ROWS = 2**13
PIECE_BYTES = 2**24
# A dictionary or a compressed page can unpack to much more than its file: this many times the largest file is read.
UNPACKED_FACTOR = 4
# As short as a row of a text file can be: a character, a comma, a character, a line break.
ROW_BYTES = 4
UTF8_MAX_BYTES = 4
# What is said of a column that is asked for and not read, by the kind of its values.
NOT_READ = {
    "binary": N_(
        "{file} has binary values in the column {column}, which are not read: choose another column, or save it as "
        "text."
    ),
    "nested": N_(
        "{file} has nested values in the column {column}, which are not read: choose another column, or save it as "
        "text."
    ),
    "other": N_(
        "{file} has other values in the column {column}, which are not read: choose another column, or save it as text."
    ),
}
ClassNames = Mapping[str, Mapping[int, str]]


def column_names(file: Any) -> list[str]:
    return [str(name) for name in file.schema_arrow.names]


def unread_columns(file: Any) -> dict[str, str]:
    """Columns that are never read, each with the kind of its values."""
    unread = {str(field.name): kind for field in file.schema_arrow if (kind := _unread_kind(field.type))}
    paths = [str(file.metadata.schema.column(i).path) for i in range(file.metadata.num_columns)]
    for name in column_names(file):
        # Arrow reads the columns `a.b` along with `a`, be they columns of their own or parts of it.
        along = [path for path in paths if path == name or path.startswith(f"{name}.")]
        if name not in unread and (len(set(along)) < len(along) or unread.keys() & set(along)):
            unread[name] = "other"
    return unread


def _unread_kind(kind: Any) -> str:
    """What values of such a type are called that are not read; "" for texts and for what takes a few bytes each."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _unread_kind(kind.value_type)
    if is_text(kind) or types.is_null(kind) or types.is_boolean(kind) or types.is_temporal(kind):
        return ""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ""
    if types.is_nested(kind):
        return "nested"
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return "binary" if binary or types.is_binary_view(kind) else "other"


def class_names(file: Any) -> ClassNames:
    """Names of classes by column and number, as the `datasets` library writes them beside a table."""
    kept = (file.schema_arrow.metadata or {}).get(b"huggingface")
    try:
        features = json.loads(kept)["info"]["features"] if kept else {}
        named = {
            str(column): feature["names"]
            for column, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
        return {column: dict(enumerate(map(str, names))) for column, names in named.items() if isinstance(names, list)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}  # notes beside the table, which is readable without them


def check_size(file: Any, name: str, max_mb: int) -> None:
    """Raises: TaskError for a file that says that it unpacks to much more than is read."""
    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    size = sum(group.total_byte_size for group in groups)
    if size > UNPACKED_FACTOR * max_mb * 2**20:
        raise _too_large(name, f"{size / 2**20:,.0f} MB", max_mb)
    most = max_mb * 2**20 // ROW_BYTES
    if file.metadata.num_rows > most:
        raise TaskError(
            "{file} has {rows:,} rows and at most {most:,} are read: give fewer, or raise {setting}.",
            file=name,
            rows=file.metadata.num_rows,
            most=most,
            setting=f"{PREFIX}MAX_FILE_MB",
        )


def _too_large(name: str, size: str, max_mb: int) -> TaskError:
    message = Message(
        "{file} unpacks to {size}, and at most {most:,} MB are read: give fewer rows, or raise {setting}.",
        file=name,
        size=size,
        most=UNPACKED_FACTOR * max_mb,
        setting=f"{PREFIX}MAX_FILE_MB",
    )
    return TaskError(message)


def parquet_records(
    stream: BinaryIO, name: str, max_mb: int, used: Collection[int] | None, batch_rows: int | None = None
) -> Iterator[Record]:
    """Rows with their number, from 1, texts without white space around them.

    Args:
        used: places of columns that matter; the others are left empty. Without it, a column that is not read shows so.
        batch_rows: how many are read at once at most (None: BATCH_ROWS).
    Raises: TaskError for a used column that is not read, and for a file that unpacks to more than is read.
    """
    file = open_parquet(stream)
    names, labels, unread = column_names(file), class_names(file), unread_columns(file)
    for place in used or ():
        if kind := unread.get(names[place]):
            raise TaskError(NOT_READ[kind], file=name, column=shown(names[place]))
    wanted = [column for i, column in enumerate(names) if column not in unread and (used is None or i in used)]
    cells = [UNREAD_CELLS[unread[column]] if used is None and column in unread else "" for column in names]
    room, number = UNPACKED_FACTOR * max_mb * 2**20, 0
    for batch in batches(file, stream, wanted, batch_rows or BATCH_ROWS):
        for piece in _pieces(batch):
            read: dict[str, list[str | None]] = {}
            for column in wanted:
                read[column], chars = _texts(piece.column(column), labels.get(column))
                room -= chars
            if room < 0:
                raise _too_large(name, _("more when it is read"), max_mb)
            filled = (read.get(column, [cell] * piece.num_rows) for column, cell in zip(names, cells, strict=True))
            for fields in zip(*filled, strict=True):
                number += 1
                yield number, LONG_FIELD if None in fields else fields


def _pieces(batch: Any) -> Iterator[Any]:
    """A batch in pieces of at most this many bytes of texts, each text counted once, or of a single row."""
    if batch.num_rows < 2 or sum(map(_text_bytes, batch.columns)) <= PIECE_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _text_bytes(array: Any) -> int:
    from pyarrow import compute, types

    if not is_text(array.type):
        return 0
    if not types.is_dictionary(array.type):
        return int(compute.sum(_lengths(array)).as_py() or 0)
    lengths = _lengths(array.dictionary)
    return int(compute.sum(lengths.take(array.indices.unique().drop_null())).as_py() or 0)


def _lengths(array: Any) -> Any:
    """The bytes of each text of a column that is no dictionary."""
    from pyarrow import compute

    return compute.binary_length(_no_view(array))


def _no_view(array: Any) -> Any:
    """Views as plain texts: Arrow computes less of them."""
    import pyarrow as pa

    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def _texts(array: Any, names: Mapping[int, str] | None) -> tuple[list[str | None], int]:
    """The values of a column as texts, None for one that is too long, and how many characters they have.

    A text that comes often is counted once.
    """
    from pyarrow import types

    if types.is_dictionary(array.type):
        places = array.indices.unique().drop_null()  # a dictionary may hold much that this piece does not
        texts, chars = _texts(array.dictionary.take(places), names)
        known = {None: "", **dict(zip(places.to_pylist(), texts, strict=True))}
        return [known[place] for place in array.indices.to_pylist()], chars
    if is_text(array.type):
        return _short_texts(array)
    values = [_text(value, names) for value in array.to_pylist()]
    return [*values], sum(map(len, values))


def _short_texts(array: Any) -> tuple[list[str | None], int]:
    from pyarrow import compute

    array = _no_view(array)
    long = compute.greater(_lengths(array), UTF8_MAX_BYTES * FIELD_MAX_CHARS)
    if compute.any(long).as_py():
        array = compute.if_else(long, None, array)
    texts = [(value or "").strip() for value in array.to_pylist()]
    return [None if left else text for text, left in zip(texts, long.to_pylist(), strict=True)], sum(map(len, texts))


def _text(value: Any, names: Mapping[int, str] | None) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int():
            # A class that has no name, such as -1, is no class.
            return str(value) if names is None else names.get(value, "")
        case float():
            if math.isnan(value):
                return ""
            return str(int(value)) if value.is_integer() else str(value)
        case _:
            return str(value)
