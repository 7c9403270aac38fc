"""Tables of Parquet files: every value as the text that a person would write for it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, BinaryIO

from core.errors import TaskError
from core.settings import PREFIX
from core.tasks.files.delimited import Record

BATCH_ROWS = 1024
# A dictionary or a compressed page can unpack to much more than its file: this many times the largest file is read.
UNPACKED_FACTOR = 4
ClassNames = Mapping[str, Mapping[int, str]]


def open_parquet(stream: BinaryIO) -> Any:
    """A `pyarrow.parquet.ParquetFile` that keeps texts as dictionaries: one that comes often is read once."""
    from pyarrow import parquet, types

    stream.seek(0)
    schema = parquet.read_schema(stream)
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    stream.seek(0)
    return parquet.ParquetFile(stream, read_dictionary=texts)


def column_names(file: Any) -> list[str]:
    return [str(name) for name in file.schema_arrow.names]


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


def _too_large(name: str, size: str, max_mb: int) -> TaskError:
    return TaskError(
        f"{name} unpacks to {size}, and at most {UNPACKED_FACTOR * max_mb:,} MB are read: "
        f"give fewer rows, or raise {PREFIX}MAX_FILE_MB."
    )


def parquet_records(file: Any, name: str, max_mb: int, used: Collection[int] | None) -> Iterator[Record]:
    """Rows with their number, from 1; a column whose place is not among those used is left empty."""
    names, labels = column_names(file), class_names(file)
    wanted = [column for place, column in enumerate(names) if used is None or place in used]
    room, number = UNPACKED_FACTOR * max_mb * 2**20, 0
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=wanted):
        read: dict[str, list[str]] = {}
        for column in batch.schema.names:
            read[column], chars = _texts(batch.column(column), labels.get(column))
            room -= chars
        if room < 0:
            raise _too_large(name, "more when it is read", max_mb)
        blank = [""] * batch.num_rows
        for fields in zip(*(read.get(column, blank) for column in names), strict=True):
            number += 1
            yield number, fields


def _texts(array: Any, names: Mapping[int, str] | None) -> tuple[list[str], int]:
    """The values of a column as texts, and how many characters they have, a text that comes often counted once."""
    from pyarrow import types

    if types.is_dictionary(array.type):
        places = array.indices.unique().drop_null()  # a dictionary may hold much that this batch does not
        texts, chars = _texts(array.dictionary.take(places), names)
        known = {None: "", **dict(zip(places.to_pylist(), texts, strict=True))}
        return [known[place] for place in array.indices.to_pylist()], chars
    texts = [_text(value, names) for value in array.to_pylist()]
    return texts, sum(map(len, texts))


def _text(value: Any, names: Mapping[int, str] | None) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            # A class that has no name, such as -1, is no class.
            return str(value) if names is None else names.get(value, "")
        case float():
            if math.isnan(value):
                return ""
            return str(int(value)) if value.is_integer() else str(value)
        case bytes():
            return f"({len(value):,} bytes)"
        case list() | dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)
