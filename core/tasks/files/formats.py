"""Detection of a file's format by its suffix and its first bytes. Anything but a table of texts is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from core.errors import TaskError
from core.messages import N_, Message

Family = Literal["delimited", "json", "parquet"]

FAMILIES: dict[str, Family] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "delimited"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    ".parquet": "parquet",
}
PARQUET_MAGIC, TAR_MAGIC, TAR_OFFSET = b"PAR1", b"ustar", 257
SPREADSHEETS = frozenset({".xlsx", ".xlsm", ".ods"})
# First bytes, description and remedy for other files. Binary files not listed here contain NULs, which texts do not.
ARCHIVE, UNPACK = N_("a compressed archive"), N_("unpack it first.")
OTHERS: tuple[tuple[bytes, str, str], ...] = (
    *(
        (magic, ARCHIVE, UNPACK)
        for magic in (b"PK\3\4", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
    ),
    (b"\xd0\xcf\x11\xe0", N_("an old Office file"), N_("save its sheet as CSV in UTF-8.")),
    (b"%PDF-", N_("a PDF file"), N_("give a CSV, TSV, JSONL or Parquet file.")),
)


def file_family(name: str, shown_name: str, head: bytes) -> Family:
    """Return the format of a file by its suffix.

    Args:
        shown_name: its name in messages.
        head: its first bytes, at least 512 if the file is that long.
    Raises: TaskError for other files, recognised by their first bytes.
    """
    suffix = Path(name).suffix.lower()
    family = FAMILIES.get(suffix)
    wanted = {"json": "JSONL", "parquet": "Parquet"}.get(family or "", "CSV")
    if head.startswith(b"PK\3\4") and (b"xl/" in head or suffix in SPREADSHEETS):
        raise _another(shown_name, N_("a spreadsheet"), wanted, N_("save its sheet as CSV in UTF-8."))
    for magic, what, remedy in OTHERS:
        if head.startswith(magic):
            raise _another(shown_name, what, wanted, remedy)
    if head[TAR_OFFSET:].startswith(TAR_MAGIC):
        raise _another(shown_name, ARCHIVE, wanted, UNPACK)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:15].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise _another(shown_name, N_("a web page or XML"), wanted, N_("download the file itself."))
    if head.startswith(PARQUET_MAGIC) and family != "parquet":
        raise _another(shown_name, N_("a Parquet file by its content"), wanted, N_("give it the suffix .parquet."))
    if family is None:
        raise TaskError(
            "{file} has none of the suffixes {suffixes}: give a CSV, TSV, JSONL or Parquet file.",
            file=shown_name,
            suffixes=tuple(FAMILIES),
        )
    if family == "parquet" and not head.startswith(PARQUET_MAGIC):
        raise TaskError(
            "{file} is not a Parquet file or is damaged: write it again, or fix its suffix.", file=shown_name
        )
    return family


def _another(file: str, what: str, wanted: str, remedy: str) -> TaskError:
    return TaskError(
        "{file} is {what}, not {wanted}: {remedy}", file=file, what=Message(what), wanted=wanted, remedy=Message(remedy)
    )
