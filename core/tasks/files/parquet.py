"""Tables of Parquet files, read by DuckDB, with every value as text.

A file of a few kilobytes can hold terabytes, because it may store a value once for all rows. Long values are therefore
not converted to Python strings, rows are read a few at a time, and their total is limited.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, BinaryIO

from core.errors import TaskError
from core.messages import Message
from core.settings import PREFIX, Settings
from core.tasks.files.delimited import Record, UnreadableRow

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS_AT_ONCE = 2_048
# Limit of the unpacked size, as a multiple of the largest file size.
UNPACKED_FACTOR = 4
# The shortest row of a text file: a character, a comma, a character, a line break.
ROW_BYTES = 4
UTF8_MAX_BYTES = 4
MEMORY_LIMIT = "2GB"
NESTED = ("STRUCT", "MAP", "UNION", "VARIANT")


class ParquetFile:
    """A Parquet file that is open in DuckDB, which cannot read any other file or address.

    Attributes:
        columns: names of the readable columns.
        unread: names of columns with nested or binary values, each with its type.
    """

    def __init__(self, database: DuckDBPyConnection, path: str) -> None:
        self._database, self._path = database, path
        types = dict(self._query("DESCRIBE SELECT * FROM read_parquet(?)", columns=2))
        self.unread = {
            name: kind
            for name, kind in types.items()
            if kind.endswith("]") or kind.startswith(NESTED) or kind in {"BLOB", "BIT", "GEOMETRY"}
        }
        self.columns = [name for name in types if name not in self.unread]
        self._texts = {name for name, kind in types.items() if kind == "VARCHAR"}

    def _query(self, query: str, columns: int) -> list[tuple[Any, ...]]:
        return [row[:columns] for row in self._database.execute(query, [self._path]).fetchall()]

    def check_size(self, name: str, limits: Settings) -> None:
        """Check the number of rows in the file's metadata. Raises: TaskError if there are too many."""
        ((rows,),) = self._query("SELECT num_rows FROM parquet_file_metadata(?)", columns=1)
        most = limits.max_file_mb * 2**20 // ROW_BYTES
        if rows > most:
            raise TaskError(
                "{file} has {rows:,} rows, but at most {most:,} are read: give fewer, or raise {setting}.",
                file=name,
                rows=rows,
                most=most,
                setting=f"{PREFIX}MAX_FILE_MB",
            )

    def class_names(self) -> Mapping[str, Mapping[int, str]]:
        """Return class names by column and number, from metadata that the `datasets` library writes."""
        try:
            kept = dict(self._query("SELECT key, value FROM parquet_kv_metadata(?)", columns=2))
            features = json.loads(kept.get(b"huggingface", b"{}"))["info"]["features"]
            return {
                column: dict(enumerate(map(str, feature["names"])))
                for column, feature in features.items()
                if feature.get("_type") == "ClassLabel"
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}  # the table is readable without this metadata

    def records(self, name: str, limits: Settings, used: Collection[int] | None) -> Iterator[Record]:
        """Yield rows with their number, from 1, and texts without surrounding white space.

        A row with an over-long text is `UnreadableRow`.

        Args:
            used: indices of the columns to read, None for all; the others are left empty.
        Raises: TaskError for a file whose unpacked size exceeds the limit.
        """
        named = self.class_names()
        wanted = [column for place, column in enumerate(self.columns) if used is None or place in used]
        cells = {column: '"' + column.replace('"', '""') + '"' for column in wanted}
        most = max(limits.max_text_chars, limits.max_label_chars)
        long_row = UnreadableRow.because(Message("{where} has a field of more than {most:,} characters", most=most))
        long = {
            column: f"coalesce(strlen({cell}), 0) > {UTF8_MAX_BYTES * most}"
            for column, cell in cells.items()
            if column in self._texts
        }
        values = [f"CASE WHEN {long[c]} THEN NULL ELSE {cell} END" if c in long else cell for c, cell in cells.items()]
        is_long = " OR ".join(long.values()) or "false"
        query = f"SELECT {', '.join([is_long, *values])} FROM read_parquet(?)"
        result = self._database.cursor().execute(query, [self._path])
        left, number = UNPACKED_FACTOR * limits.max_file_mb * 2**20, 0
        while rows := result.fetchmany(ROWS_AT_ONCE):
            for row_is_long, *row in rows:
                number += 1
                texts = {c: _text(value, named.get(c)) for c, value in zip(wanted, row, strict=True)}
                left -= sum(map(len, texts.values()))
                yield number, long_row if row_is_long else tuple(texts.get(column, "") for column in self.columns)
            if left < 0:
                raise TaskError(
                    "{file} unpacks to more than {most:,} MB: give fewer rows, or raise {setting}.",
                    file=name,
                    most=UNPACKED_FACTOR * limits.max_file_mb,
                    setting=f"{PREFIX}MAX_FILE_MB",
                )


@contextmanager
def open_parquet(stream: BinaryIO) -> Iterator[ParquetFile]:
    """Open a copy of a Parquet file in DuckDB. The name of the copy cannot be mistaken for a pattern or an address."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        path = Path(folder, "table.parquet")
        stream.seek(0)
        with path.open("wb") as copy:
            copyfileobj(stream, copy)
        for setting, value in (
            ("threads", 1),
            ("memory_limit", MEMORY_LIMIT),
            ("TimeZone", "UTC"),
            ("allowed_paths", [str(path)]),
            ("enable_external_access", False),
            ("lock_configuration", True),
        ):
            database.execute(f"SET {setting} = {value!r}")
        yield ParquetFile(database, str(path))


def _text(value: Any, names: Mapping[int, str] | None) -> str:
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case bool():
            return "true" if value else "false"
        case int():
            # A number without a name, such as -1, is not a class.
            return str(value) if names is None else names.get(value, "")
        case float() if math.isnan(value):
            return ""
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)
