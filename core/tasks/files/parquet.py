"""Tables of Parquet files, read by DuckDB, with every value as text.

A file of a few kilobytes can hold terabytes, because it may store a value once for all rows. DuckDB therefore leaves
out long values, rows are read a few at a time, and their total is limited.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
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
        classes = _class_names(database)
        named = [(place, classes[column]) for place, column in enumerate(columns) if column in classes]
        ((rows,),) = database.execute("SELECT count(*) FROM rows").fetchall()
        left = UNPACKED_FACTOR * limits.max_file_mb * 2**20 - ROW_BYTES * rows
        result = database.execute(f"SELECT {', '.join(cells)} FROM rows")
        batches = iter(partial(result.fetchmany, ROWS_AT_ONCE), [])
        for number, fields in enumerate(chain.from_iterable(batches), 1):
            left -= sum(len(cell or "") for cell in fields)
            if left < 0:
                raise limit_error(name, "max_file_mb", UNPACKED_FACTOR * limits.max_file_mb)
            row = [long if cell is None else cell for cell in fields]
            for place, names in named:
                row[place] = names.get(row[place], "")  # a number without a name, such as -1, is no class
            yield number, tuple(row)


def _class_names(database: DuckDBPyConnection) -> Mapping[str, Mapping[str, str]]:
    """Return class names by column and number, from metadata that the `datasets` library writes."""
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):  # a table needs no metadata
        ((kept,),) = database.execute("SELECT value FROM metadata WHERE key = 'huggingface'").fetchall()
        features = json.loads(kept)["info"]["features"].items()
        named = [(column, feature["names"]) for column, feature in features if feature.get("_type") == "ClassLabel"]
        return {column: {str(number): str(name) for number, name in enumerate(names)} for column, names in named}
    return {}


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
            database.execute(f"CREATE VIEW metadata AS FROM parquet_kv_metadata('{path}')")
            database.execute("SET lock_configuration = true")
            yield database
        except duckdb.Error as error:
            raise TaskError(
                "{file} is damaged or not a Parquet file ({reason}): write the file again.",
                file=name,
                reason=one_line(error).replace(f"{folder}/", ""),
            ) from None
