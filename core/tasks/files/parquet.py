"""Tables of Parquet files, read by DuckDB, with every value as text.

A file of a few kilobytes can hold terabytes, because it may store a value once for all rows. DuckDB therefore leaves
out long values, rows are read a few at a time, and their total is limited.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import TaskError, quote_value
from core.settings import Settings
from core.tasks.files.delimited import Record
from core.tasks.files.problems import limit_error
from core.tasks.rows import one_line

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS_AT_ONCE = 2_048
# Limit of the unpacked size, as a multiple of the largest file size.
UNPACKED_FACTOR = 4
# The shortest row of a text file: a character, a comma, a character, a line break.
ROW_BYTES = 4
UTF8_MAX_BYTES = 4
NO_TEXT = ("STRUCT", "MAP", "UNION", "VARIANT", "BLOB", "BIT", "GEOMETRY")


def parquet_columns(content: bytes, name: str) -> Mapping[str, str]:
    """Return the columns of a file with their types. Raises: TaskError for a damaged file or a column without texts."""
    with _opened(content, name) as database:
        types: dict[str, str] = dict(row[:2] for row in database.execute("DESCRIBE rows").fetchall())
    for column, kind in types.items():
        if kind.endswith("]") or kind.startswith(NO_TEXT):
            raise TaskError(
                "{file} has values of type {type} in the column {column}: leave it out, or save it as text.",
                file=name,
                type=quote_value(kind),
                column=quote_value(column),
            )
    return types


def parquet_records(content: bytes, name: str, columns: Mapping[str, str], limits: Settings) -> Iterator[Record]:
    """Yield rows with their number, from 1. A text far beyond the limits is replaced by dots, which exceed them too.

    Raises: TaskError for a damaged file, or one whose unpacked size exceeds the limit.
    """
    most = max(limits.max_text_chars, limits.max_label_chars)
    cells = []
    for column, kind in columns.items():
        cell = "CAST({} AS VARCHAR)".format('"' + column.replace('"', '""') + '"')
        if kind in {"FLOAT", "DOUBLE"}:
            cell = f"nullif(regexp_replace({cell}, '\\.0$', ''), 'nan')"  # whole numbers are class numbers
        cells.append(f"CASE WHEN strlen({cell}) > {UTF8_MAX_BYTES * most} THEN NULL ELSE coalesce({cell}, '') END")
    long = "…" * (most + 1)
    with _opened(content, name) as database:
        ((rows,),) = database.execute("SELECT count(*) FROM rows").fetchall()
        left, number = UNPACKED_FACTOR * limits.max_file_mb * 2**20 - ROW_BYTES * rows, 1
        result = database.execute(f"SELECT {', '.join(cells)} FROM rows")
        while left >= 0 and (fetched := result.fetchmany(ROWS_AT_ONCE)):
            left -= sum(len(cell or "") for fields in fetched for cell in fields)
            yield from enumerate((tuple(long if c is None else c for c in fields) for fields in fetched), number)
            number += len(fetched)
    if left < 0:
        raise limit_error(name, "max_file_mb", UNPACKED_FACTOR * limits.max_file_mb)


@contextmanager
def _opened(content: bytes, name: str) -> Iterator[DuckDBPyConnection]:
    """Open a copy of a Parquet file as the view `rows`, in a database that cannot read any other file or address."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        path = Path(folder, "table.parquet")
        path.write_bytes(content)
        try:
            database.execute("SET threads = 1; SET memory_limit = '2GB'; SET TimeZone = 'UTC'")
            database.execute("SET enable_progress_bar = false")  # its output would mix with the command line's
            database.execute(f"SET allowed_paths = ['{path}']; SET enable_external_access = false")
            database.execute(f"CREATE VIEW rows AS FROM read_parquet('{path}')")
            yield database
        except duckdb.Error as error:
            raise TaskError(
                "{file} is damaged or not a Parquet file ({reason}): write the file again.",
                file=name,
                reason=one_line(error).replace(f"{folder}/", ""),
            ) from None
