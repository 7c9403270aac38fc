"""Rows from a CSV file with the columns text and label, refused in one sentence when they cannot be used.

A column text_b beside them makes every row a pair.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import TaskError, shown

MAX_BYTES = 50 * 2**20
MAX_ROWS = 200_000
MAX_TEXT_CHARS = 20_000
MAX_LABEL_CHARS = 100
MAX_CLASSES = 100
COLUMNS = ("text", "label")
SECOND = "text_b"


class Rows(NamedTuple):
    """The rows of a file in its order; `seconds` where they are pairs."""

    texts: list[str]
    labels: list[str]
    seconds: list[str] | None


def read_csv(path: str | Path) -> Rows:
    """Texts and labels of a file, in its order; white space around them is dropped.

    Raises: TaskError naming the file, the line and what would work.
    """
    rows = csv.reader(io.StringIO(_decoded(Path(path)), newline=""), strict=True)
    name = shown(Path(path).name)
    try:
        header = [column.strip() for column in next(rows, [])]
        _check_columns(name, header)
        found = _rows(name, rows, header)
    except csv.Error as error:
        raise TaskError(
            f"{name}, line {rows.line_num}, is not valid CSV ({error}): quote fields that hold commas or line breaks."
        ) from None
    _check_classes(name, found.labels)
    return found


def _decoded(path: Path) -> str:
    name = shown(path.name)
    if path.suffix.lower() != ".csv":
        raise TaskError(f"{name} is not a .csv file: give a CSV file with the columns text,label.")
    try:
        # A fifo or a device would block or never end, so only regular files are opened.
        if not path.is_file():
            raise TaskError(f"{name} was not found in {shown(str(path.parent))}: check the path of the CSV file.")
        size = os.path.getsize(path)
        if size > MAX_BYTES:
            raise TaskError(
                f"{name} has {size / 2**20:,.0f} MB and at most {MAX_BYTES // 2**20} MB are read: give fewer rows."
            )
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TaskError(f"{name} cannot be read ({reason}): check the path.") from None
    if not raw.strip():
        raise TaskError(f"{name} is empty: give a CSV file with the columns text,label.")
    if b"\0" in raw:
        raise TaskError(f"{name} holds binary data, not text: save it as CSV in UTF-8.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TaskError(f"{name}, line {line}, is not UTF-8 text: save the file as CSV in UTF-8.") from None


def _check_columns(name: str, header: list[str]) -> None:
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise TaskError(
            f"{name} has the columns {shown(', '.join(header))} and lacks {' and '.join(missing)}: "
            "name the columns text,label in the first line."
        )
    doubled = [column for column in (*COLUMNS, SECOND) if header.count(column) > 1]
    if doubled:
        raise TaskError(f"{name} has more than one column {doubled[0]}: keep one.")


def _rows(name: str, rows: Any, header: list[str]) -> Rows:
    found = Rows([], [], [] if SECOND in header else None)
    for row in rows:
        if not row:
            continue
        line = rows.line_num
        if len(row) != len(header):
            raise TaskError(
                f"{name}, line {line}, has {len(row)} fields where the header has {len(header)}: quote commas."
            )
        fields = dict(zip(header, (field.strip() for field in row), strict=True))
        label = fields["label"]
        texts = [(column, fields[column]) for column in ("text", SECOND) if column in fields]
        for column, value in (*texts, ("label", label)):
            if not value:
                raise TaskError(f"{name}, line {line}, has an empty {column}: fill it or drop the row.")
        if len(label) > MAX_LABEL_CHARS:
            raise TaskError(
                f"{name}, line {line}, has the label {shown(label)} and a label has at most {MAX_LABEL_CHARS}: "
                "check which column holds the labels."
            )
        for column, text in texts:
            if len(text) > MAX_TEXT_CHARS:
                raise TaskError(
                    f"{name}, line {line}, has a {column} of {len(text):,} characters and at most "
                    f"{MAX_TEXT_CHARS:,} are read: shorten it."
                )
        found.texts.append(fields["text"])
        found.labels.append(label)
        if found.seconds is not None:
            found.seconds.append(fields[SECOND])
        if len(found.texts) > MAX_ROWS:
            raise TaskError(f"{name} has more than {MAX_ROWS:,} rows: give fewer.")
    if not found.texts:
        raise TaskError(f"{name} has a header and no rows: add rows with text,label.")
    return found


def _check_classes(name: str, labels: list[str]) -> None:
    classes = set(labels)
    if len(classes) > MAX_CLASSES:
        raise TaskError(
            f"{name} has {len(classes):,} different labels and at most {MAX_CLASSES} are learned: "
            "check which column holds the labels."
        )
