"""What a file is, by its suffix and by how it begins; what is no table of texts is refused."""

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
UNPACK = N_("unpack it first.")
EXPORT = N_("save its sheet as CSV in UTF-8.")
NO_TABLE = N_("give a CSV, TSV, JSONL or Parquet file.")
AS_PARQUET = N_("save it as Parquet.")
NAME_PARQUET = N_("give it the suffix .parquet.")
DOWNLOAD = N_("download the file itself.")
PARQUET_MAGIC = b"PAR1"
# How files of other kinds begin, what to call them, and what to do.
MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", N_("a ZIP archive"), UNPACK),
    (b"PK\x05\x06", N_("an empty ZIP archive"), NO_TABLE),
    (b"\x1f\x8b", N_("a gzip archive"), UNPACK),
    *((b"BZh%d1AY&SY" % size, N_("a bzip2 archive"), UNPACK) for size in range(1, 10)),
    (b"\xfd7zXZ\0", N_("an xz archive"), UNPACK),
    (b"7z\xbc\xaf\x27\x1c", N_("a 7-Zip archive"), UNPACK),
    (b"Rar!\x1a\x07", N_("a RAR archive"), UNPACK),
    (b"\x28\xb5\x2f\xfd", N_("a Zstandard archive"), UNPACK),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", N_("an old Office file"), EXPORT),
    (b"%PDF-", N_("a PDF file"), NO_TABLE),
    (b"{\\rtf", N_("a rich text file"), NO_TABLE),
    (b"\x89PNG\r\n", N_("a PNG image"), NO_TABLE),
    (b"\xff\xd8\xff", N_("a JPEG image"), NO_TABLE),
    (b"GIF87a", N_("a GIF image"), NO_TABLE),
    (b"GIF89a", N_("a GIF image"), NO_TABLE),
    (b"SQLite format 3\0", N_("an SQLite database"), NO_TABLE),
    (b"\x93NUMPY", N_("a NumPy array"), NO_TABLE),
    (b"ARROW1\0\0", N_("an Arrow file"), AS_PARQUET),
    (b"FEA1", N_("a Feather file"), AS_PARQUET),
    (b"\x89HDF\r\n", N_("an HDF5 file"), NO_TABLE),
    (b"\x7fELF", N_("a program"), NO_TABLE),
    *((b"\x80" + bytes([version]), N_("a Python pickle, which is never opened"), NO_TABLE) for version in range(2, 6)),
)
# Recognised by more than their first bytes.
SPREADSHEET, TAR_ARCHIVE, WEB_PAGE = N_("a spreadsheet"), N_("a tar archive"), N_("a web page or XML")
HIDDEN_PARQUET = N_("a Parquet file by what is in it")
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
        raise TaskError(_another(shown_name, SPREADSHEET, wanted, EXPORT))
    for magic, what, remedy in MAGIC:
        if head.startswith(magic):
            raise TaskError(_another(shown_name, what, wanted, remedy))
    if head[TAR_OFFSET:].startswith(TAR_MAGIC):
        raise TaskError(_another(shown_name, TAR_ARCHIVE, wanted, UNPACK))
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:15].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise TaskError(_another(shown_name, WEB_PAGE, wanted, DOWNLOAD))
    if head.startswith(PARQUET_MAGIC) and family != "parquet":
        raise TaskError(_another(shown_name, HIDDEN_PARQUET, wanted, NAME_PARQUET))
    if family is None:
        raise TaskError(
            "{file} has none of the suffixes {suffixes}: give a CSV, TSV, JSONL or Parquet file.",
            file=shown_name,
            suffixes=tuple(FAMILIES),
        )
    if family == "parquet" and not head.startswith(PARQUET_MAGIC):
        raise TaskError(
            "{file} is not a Parquet file, or a damaged one: write it again, or fix its suffix.", file=shown_name
        )
    return family


def _another(file: str, what: str, wanted: str, remedy: str) -> Message:
    return Message(
        "{file} is {what}, not {wanted}: {remedy}", file=file, what=Message(what), wanted=wanted, remedy=Message(remedy)
    )
