"""The row groups of a Parquet file, each read as it is stored: texts as dictionaries where Arrow can read them so."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

from core.tasks.files.kinds import PARQUET_MAGIC

# Rows at a time of texts that are not read as dictionaries and may be longer than the pages that hold them.
EXPANDING_BATCH_ROWS = 32
# Arrow reads these as dictionaries (RLE and BIT_PACKED are those of the levels), and no other encoding of texts.
DICTIONARY_ENCODINGS = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})
# A page in these holds every byte of its texts; in DELTA_BYTE_ARRAY a text repeats the beginning of the one above.
WHOLE_ENCODINGS = frozenset({"PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "RLE", "BIT_PACKED"})
ARROW_SCHEMA_KEY = b"ARROW:schema"


class Stretch(NamedTuple):
    """Row groups in a row that are read alike.

    Attributes:
        dictionaries: the columns that are read as dictionaries.
        batch_rows: how many rows are read at once.
    """

    groups: list[int]
    dictionaries: list[str]
    batch_rows: int


def open_parquet(stream: BinaryIO) -> Any:
    """A `pyarrow.parquet.ParquetFile`, whose texts can all be read."""
    from pyarrow import parquet

    stream.seek(0)
    file = parquet.ParquetFile(stream)
    if _dictionaries_in_other_encodings(file):
        file = parquet.ParquetFile(stream, metadata=_without_arrow_schema(stream))
    return file


def _dictionaries_in_other_encodings(file: Any) -> bool:
    """Whether the Arrow schema that a file carries asks for dictionaries that Arrow cannot read."""
    from pyarrow import types

    asked = [field.name for field in file.schema_arrow if types.is_dictionary(field.type) and is_text(field.type)]
    chunks = _text_encodings(file, asked) if asked else []
    return any(not encodings <= DICTIONARY_ENCODINGS for chunk in chunks for encodings in chunk.values())


def _without_arrow_schema(stream: BinaryIO) -> Any:
    """The metadata of a file without its Arrow schema, which goes under another name of the same length."""
    from pyarrow import parquet

    stream.seek(-8, io.SEEK_END)
    size = int.from_bytes(stream.read(4), "little") + 8
    stream.seek(-size, io.SEEK_END)
    footer = stream.read(size).replace(ARROW_SCHEMA_KEY, ARROW_SCHEMA_KEY.swapcase())
    return parquet.read_metadata(io.BytesIO(PARQUET_MAGIC + footer))


def _text_encodings(file: Any, columns: Collection[str]) -> Iterator[dict[str, frozenset[str]]]:
    """For each row group, the encodings of these columns."""
    metadata = file.metadata
    paths = {i: str(metadata.schema.column(i).path) for i in range(metadata.num_columns)}
    places = {place: path for place, path in paths.items() if path in columns}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield {path: frozenset(group.column(place).encodings) for place, path in places.items()}


def stretches(file: Any, columns: Collection[str], batch_rows: int) -> Iterator[Stretch]:
    """How to read the row groups of a file with these text columns."""

    def reading(encodings: Mapping[str, frozenset[str]]) -> tuple[list[str], int]:
        dictionaries = [name for name, used in encodings.items() if used <= DICTIONARY_ENCODINGS]
        others = [used for name, used in encodings.items() if name not in dictionaries]
        whole = all(used <= WHOLE_ENCODINGS for used in others)
        return dictionaries, batch_rows if whole else min(batch_rows, EXPANDING_BATCH_ROWS)

    readings = map(reading, _text_encodings(file, columns))
    for (dictionaries, rows), groups in groupby(enumerate(readings), key=lambda numbered: numbered[1]):
        yield Stretch([number for number, _ in groups], dictionaries, rows)


def batches(file: Any, stream: BinaryIO, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
    """All rows of these columns, some at a time: texts as dictionaries where that can be."""
    from pyarrow import parquet

    texts = {field.name for field in file.schema_arrow if field.name in columns and is_text(field.type)}
    for stretch in stretches(file, texts, batch_rows):
        stream.seek(0)
        part = parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=stretch.dictionaries)
        yield from part.iter_batches(batch_size=stretch.batch_rows, row_groups=stretch.groups, columns=columns)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts, or of a dictionary of texts."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
