"""What a file is, by its suffix and by how it begins; what is no table of texts is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from core.errors import TaskError

Family = Literal["delimited", "json", "parquet"]

FAMILIES: dict[str, Family] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "delimited"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    ".parquet": "parquet",
}
UNPACK = "unpack it first."
EXPORT = "save its sheet as CSV in UTF-8."
NO_TABLE = "give a CSV, TSV, JSONL or Parquet file."
PARQUET_MAGIC = b"PAR1"
# How files of other kinds begin, what to call them, and what to do.
MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive", UNPACK),
    (b"PK\x05\x06", "an empty ZIP archive", NO_TABLE),
    (b"\x1f\x8b", "a gzip archive", UNPACK),
    *((b"BZh%d1AY&SY" % size, "a bzip2 archive", UNPACK) for size in range(1, 10)),
    (b"\xfd7zXZ\0", "an xz archive", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", UNPACK),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file", EXPORT),
    (b"%PDF-", "a PDF file", NO_TABLE),
    (b"{\\rtf", "a rich text file", NO_TABLE),
    (b"\x89PNG\r\n", "a PNG image", NO_TABLE),
    (b"\xff\xd8\xff", "a JPEG image", NO_TABLE),
    (b"GIF87a", "a GIF image", NO_TABLE),
    (b"GIF89a", "a GIF image", NO_TABLE),
    (b"SQLite format 3\0", "an SQLite database", NO_TABLE),
    (b"\x93NUMPY", "a NumPy array", NO_TABLE),
    (b"ARROW1\0\0", "an Arrow file", "save it as Parquet."),
    (b"FEA1", "a Feather file", "save it as Parquet."),
    (b"\x89HDF\r\n", "an HDF5 file", NO_TABLE),
    (b"\x7fELF", "a program", NO_TABLE),
    *((b"\x80" + bytes([version]), "a Python pickle, which is never opened", NO_TABLE) for version in range(2, 6)),
)
SPREADSHEETS = frozenset({".xlsx", ".xlsm", ".ods"})
TAR_MAGIC, TAR_OFFSET = b"ustar", 257


def file_family(name: str, shown_name: str, head: bytes) -> Family:
    """How to read a file, by its suffix.

    Args:
        shown_name: how messages call it.
        head: its first bytes, 512 at least where the file has that many.
    Raises: TaskError for other files, recognised by how they begin.
    """
    suffix = Path(name).suffix.lower()
    family = FAMILIES.get(suffix)
    wanted = {"json": "JSONL", "parquet": "Parquet"}.get(family or "", "CSV")
    if head.startswith(b"PK\x03\x04") and (b"xl/" in head or suffix in SPREADSHEETS):
        raise TaskError(f"{shown_name} is a spreadsheet, not {wanted}: {EXPORT}")
    for magic, what, remedy in MAGIC:
        if head.startswith(magic):
            raise TaskError(f"{shown_name} is {what}, not {wanted}: {remedy}")
    if head[TAR_OFFSET:].startswith(TAR_MAGIC):
        raise TaskError(f"{shown_name} is a tar archive, not {wanted}: {UNPACK}")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:15].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise TaskError(f"{shown_name} is a web page or XML, not {wanted}: download the file itself.")
    if head.startswith(PARQUET_MAGIC) and family != "parquet":
        raise TaskError(f"{shown_name} is a Parquet file by what is in it, not {wanted}: give it the suffix .parquet.")
    if family is None:
        raise TaskError(f"{shown_name} has none of the suffixes {', '.join(FAMILIES)}: {NO_TABLE}")
    if family == "parquet" and not head.startswith(PARQUET_MAGIC):
        raise TaskError(f"{shown_name} is not a Parquet file, or a damaged one: write it again, or mend its suffix.")
    return family
