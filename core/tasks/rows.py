"""Rows of texts with labels in the order of their source, and the Parquet file that stores them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from core.atomic import atomic_write
from core.config import OWN_TASK
from core.errors import TaskError, quote_value
from core.messages import N_, Message

SplitName = Literal["train", "validation", "test"]
Kind = Literal["classes", "similarity"]

SPLIT_NAMES: tuple[SplitName, ...] = get_args(SplitName)
KINDS: tuple[Kind, ...] = get_args(Kind)
META_KEY = b"scl_rows"
META_VERSION = 1
# Position of a row, by unit and by whether it begins a sentence.
PLACES: Mapping[tuple[str, bool], str] = {
    ("line", True): N_("Line {number:,}"),
    ("line", False): N_("line {number:,}"),
    ("row", True): N_("Row {number:,}"),
    ("row", False): N_("row {number:,}"),
}


def place_words(unit: str, number: int, *, begins: bool = False) -> Message:
    """Return the position of a row in words, such as "line 1,204".

    Args:
        unit: "line", or "row" for a file without lines.
        begins: whether the words begin a sentence.
    """
    return Message(PLACES[unit, begins], number=number)


@dataclass(frozen=True)
class Rows:
    """Texts and labels in the order of their file.

    Attributes:
        texts: one text per row.
        labels: text from the file without surrounding white space; similarity scores are text too.
        seconds: second texts, if the rows are pairs.
        splits: split of each row, if the file names splits.
        kind: "classes" if labels are class names, "similarity" if they are similarity scores.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    seconds: tuple[str, ...] | None = None
    splits: tuple[SplitName, ...] | None = None
    kind: Kind = "classes"

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices: Sequence[int]) -> Rows:
        """Return these rows, in this order."""
        return Rows(
            tuple(self.texts[i] for i in indices),
            tuple(self.labels[i] for i in indices),
            None if self.seconds is None else tuple(self.seconds[i] for i in indices),
            None if self.splits is None else tuple(self.splits[i] for i in indices),
            self.kind,
        )

    @cached_property
    def content_hash(self) -> str:
        """Return the SHA-256, in hex, of the kind and of every row in order."""
        digest = hashlib.sha256()
        for part in (self.kind, self.texts, self.labels, self.seconds, self.splits):
            digest.update(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
            digest.update(b"\n")
        return digest.hexdigest()


def is_own(task_id: str) -> bool:
    """Return whether a task was added by a user."""
    return task_id.startswith(OWN_TASK)


def write_rows(path: Path, rows: Rows, metadata: Mapping[str, str]) -> None:
    """Write rows and their metadata to one Parquet file with columns text, text_b?, label, split?.

    The file is written under a temporary name and renamed, so that a reader finds a complete file or none.

    Raises: TaskError if the disk is full or the folder cannot be written.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"text": rows.texts, "text_b": rows.seconds, "label": rows.labels, "split": rows.splits}
    about = {"version": META_VERSION, "kind": rows.kind, "metadata": dict(metadata)}
    try:
        table = pa.table(
            {name: pa.array(values, pa.string()) for name, values in columns.items() if values is not None}
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial, partial.open("wb") as file:
            parquet.write_table(table.replace_schema_metadata({META_KEY: json.dumps(about)}), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TaskError(
            "The rows file {file} could not be written ({reason}).", file=quote_value(path.name), reason=one_line(error)
        ) from error


def read_rows_file(path: Path) -> tuple[Rows, dict[str, str]]:
    """Read a file that `write_rows` wrote.

    Raises: TaskError for a file that is missing or damaged.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if not path.is_file():  # a fifo would block
            raise TaskError("The rows file {file} is missing: add the data again.", file=quote_value(path.name))
        with path.open("rb") as file:
            return _checked(parquet.read_table(file))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise TaskError(
            "The rows file {file} is damaged ({reason}): add the data again.",
            file=quote_value(path.name),
            reason=one_line(error),
        ) from error


def _checked(table: Any) -> tuple[Rows, dict[str, str]]:
    """Return rows and metadata of a table. Raises: ValueError, KeyError or the like for another kind of table."""
    about = json.loads((table.schema.metadata or {})[META_KEY])
    columns = {name: tuple(table.column(name).to_pylist()) for name in table.column_names}
    if about["version"] != META_VERSION or about["kind"] not in KINDS:
        raise ValueError(f"version {quote_value(about['version'])}, kind {quote_value(about['kind'])}")
    if not {"text", "label"} <= columns.keys() <= {"text", "text_b", "label", "split"}:
        raise ValueError(f"columns {quote_value(', '.join(columns))}")
    if not all(isinstance(value, str) for values in columns.values() for value in values):
        raise ValueError("a value that is no text")
    if not set(columns.get("split", ())) <= set(SPLIT_NAMES):
        raise ValueError("an unknown split")
    rows = Rows(columns["text"], columns["label"], columns.get("text_b"), columns.get("split"), about["kind"])
    return rows, {str(key): str(value) for key, value in about["metadata"].items()}


def file_stamp(path: Path) -> tuple[int, int]:
    """Return a file's modification time (ns) and size; zeros if it cannot be found."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def one_line(error: BaseException, most: int = 160) -> str:
    """Return the first line of a library's error message, shortened and without a full stop."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    text = " ".join("".join(c if c.isprintable() else " " for c in reason.split("\n")[0]).split()).rstrip(".:")
    return text if len(text) <= most else f"{text[:most]}…"
