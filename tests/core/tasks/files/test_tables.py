"""Files as tables: contents, detection of the format, and the error message for all other files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import TaskError
from core.messages import Message
from core.settings import settings
from core.tasks.files.tables import Table, named_columns, open_table
from tests.cases import each
from tests.hub_server import csv_file, parquet_file

HEADER = b"text,label\n"
KINDS = ["csv", "tsv", "jsonl", "parquet"]


def opened(raw: bytes | str, name: str = "rows.csv", **options: Any) -> Table:
    return open_table(raw.encode() if isinstance(raw, str) else raw, name, ReadingConfig(**options))


def fields(table: Table) -> list[tuple[str, ...]]:
    return [() if isinstance(row, Message) else row for _, row in table.records()]


def written(kind: str, columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return a file of one of the KINDS, in UTF-8."""
    if kind == "parquet":
        return parquet_file(columns)
    rows = list(zip(*columns.values(), strict=True))
    if kind == "jsonl":
        records = (dict(zip(columns, row, strict=True)) for row in rows)
        return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    return csv_file(tuple(columns), *rows, delimiter="\t" if kind == "tsv" else ",")


def check_sentence(message: str) -> str:
    """Check that a message is one short line that ends in a full stop, and return it."""
    assert message.isprintable(), message
    assert message.endswith("."), message
    assert len(message) < 400, message
    return message


def refusal(source: Path | bytes, name: str = "rows.csv") -> str:
    with pytest.raises(TaskError) as caught:
        list(open_table(source, name).records())
    return check_sentence(str(caught.value))


class TestDelimited:
    def test_without_a_header_the_columns_are_numbered(self) -> None:
        table = opened(b"A film that I liked a lot.\t1\nNot so good, really.\t0\n", "yelp_labelled.txt")
        assert (table.format, table.header, table.columns) == ("TSV", False, ("column 1", "column 2"))
        assert list(table.records()) == [(1, ("A film that I liked a lot.", "1")), (2, ("Not so good, really.", "0"))]

    @each(("header", "first"), [(True, ("a", "x")), (False, ("text", "label")), (None, ("a", "x"))])
    def test_a_header_can_be_settled(self, header: bool | None, first: tuple[str, ...]) -> None:
        table = opened(b"text,label\na,x\n", header=header)
        assert table.header == (header is not False)
        assert fields(table)[0] == first == table.preview[0]


class TestJsonLines:
    def test_values_keep_their_written_form(self) -> None:
        raw = b'{"text": "a", "label": 1}\n{"text": "b", "label": 1.50}\n\n{"text": null, "label": true, "more": 1e5}\n'
        table = opened(raw, "rows.jsonl")
        assert (table.format, table.columns, table.encoding) == ("JSONL", ("text", "label", "more"), "utf-8")
        assert list(table.records()) == [(1, ("a", "1", "")), (2, ("b", "1.50", "")), (4, ("", "true", "1e5"))]

    def test_nested_values_are_json(self) -> None:
        written = r'{"n": null, "t": "1", "more": {"list": [[], {}, "caf\u00e9"], "": false}}'
        raw = f'{{"text": "a", "label": {written}}}\n{{"text": {written}, "label": "x"}}\n'
        nested = written.replace("\\u00e9", "é")
        assert fields(opened(raw.encode(), "rows.jsonl")) == [("a", nested), (nested, "x")]

    def test_what_is_no_object_has_no_fields(self) -> None:
        bad = ["[1]", "3", '{"text": ', '"text"', '{"text": "\\ud800"}', "{'text': 1}", "[" * 100_000, "null", "x"]
        raw = "\n".join(['{"text": "a", "label": "x"}', *bad, '{"text": "\\ud83d\\ude00", "label": "y"}'])
        table = opened(raw.encode(), "rows.json")
        assert fields(table) == [("a", "x"), *[()] * len(bad), ("😀", "y")]
        assert [line for line, _ in table.records()] == list(range(1, len(bad) + 3))

    def test_a_key_that_first_stands_far_down_is_a_column(self) -> None:
        rows = [{"text": f"text {i}", "label": i % 2} for i in range(300)]
        for row in rows[210:]:
            row["split"] = "test"
        rows[250]["note"] = "x" * 5_000
        table = opened("\n".join(map(json.dumps, rows)).encode(), "rows.jsonl")
        assert table.columns == ("text", "label", "split", "note")
        whole = [(row["text"], str(row["label"]), row.get("split", ""), row.get("note", "")) for row in rows]
        assert fields(table) == whole
        assert list(table.preview) == whole[:200]

    @each("raw", [b'[{"text": "a"},\n{"text": "b"}]', b'{\n"text": "a"\n}', b"{}\n{}"])
    def test_other_json_is_refused(self, raw: bytes) -> None:
        assert "has no line with a JSON object with values: write one object on each line" in refusal(raw, "rows.json")


@each(
    ("cells", "names"),
    [
        ([" a\tb ", ""], ("a b", "column 2")),
        (["a (2)", "a", "a", "a", "a (2)"], ("a (2)", "a", "a (3)", "a (4)", "a (2) (2)")),
        (["column 2", ""], ("column 2", "column 2 (2)")),
        (["x" * 500], ("x" * 180,)),
    ],
)
def test_columns_have_names_that_can_be_told_apart(cells: list[str], names: tuple[str, ...]) -> None:
    assert named_columns(cells, "rows.csv", settings()) == names


class TestOtherFiles:
    @each(
        "raw",
        [
            *(b"PK\3\4\x14\0\0\0", gzip.compress(HEADER), bz2.compress(HEADER), lzma.compress(HEADER)),
            *(b"\0" * 257 + b"ustar", b"\x89PNG\r\n\x1a\n\0\0"),
            *(b"PAR1" + b"\0" * 20 + b"PAR1", b"%PDF-1.7\n", b"\n<!DOCTYPE html><html>"),
        ],
    )
    def test_they_are_refused_in_one_sentence(self, raw: bytes) -> None:
        assert refusal(raw) == (
            "'rows.csv' is a web page, a spreadsheet, an archive or other data, not a table of texts: save it as CSV "
            "in UTF-8."
        )

    @each("name", ["rows.xlsx", "rows", ".csv"])
    def test_other_suffixes_are_refused(self, name: str) -> None:
        message = refusal(HEADER, name)
        assert "has none of the suffixes .csv, .txt, .tsv, .jsonl, .ndjson, .json, .parquet" in message

    @each("raw", [HEADER, b"PAR1" + b"\0" * 20 + b"PAR1"])
    def test_a_damaged_parquet_file_is_refused(self, raw: bytes) -> None:
        assert refusal(raw, "rows.parquet").startswith("'rows.parquet' is damaged or not a Parquet file (")

    def test_a_name_is_shown_safely(self) -> None:
        assert refusal(b"", "a\nb\x1b[31m" + "x" * 200 + ".csv").startswith("'a\\nb")


class TestPaths:
    def test_a_missing_file_a_folder_and_a_fifo_are_refused_and_not_waited_for(self, tmp_path: Path) -> None:
        for name in ("missing.csv", "no/such/folder.csv", "nul\0.csv", "x" * 300 + ".csv"):
            refusal(tmp_path / name)
        (tmp_path / "folder.csv").mkdir()
        os.mkfifo(tmp_path / "rows.csv")
        assert "'folder.csv' was not found as a file" in refusal(tmp_path / "folder.csv")
        assert "'rows.csv' was not found as a file" in refusal(tmp_path / "rows.csv")


class TestLimits:
    def test_too_large_a_file_is_refused_before_it_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "5")
        path = tmp_path / "rows.csv"
        with path.open("wb") as file:
            file.write(HEADER)
            file.truncate(6 * 2**20)
        monkeypatch.setattr(Path, "read_bytes", lambda *_: pytest.fail("it was read"))
        assert refusal(path) == "'rows.csv' has more than 5 MB: shorten the file, or raise SCL_MAX_FILE_MB."

    @pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
    def test_too_many_columns_are_refused(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_COLUMNS", "3")
        raw = b'{"a": 1, "b": 1, "c": 1, "d": 1}' if name.endswith("l") else b"a,b,c,d\n1,2,3,4"
        assert refusal(raw, name).endswith("has more than 3 columns: shorten the file, or raise SCL_MAX_COLUMNS.")

    @pytest.mark.parametrize("cells", ["a,", ",", "a (2),a,", "1,"])
    def test_very_many_columns_take_no_time(self, cells: str) -> None:
        raw = (cells * 30_000)[:40_000] + "\n" + "1,2\n" * 5_000
        start = time.process_time()
        for header in (True, False, None):
            table = f"text,label\n{raw}" if header is None else raw
            with suppress(TaskError):
                open_table(table.encode(), "rows.csv", ReadingConfig(header=header))
        assert time.process_time() - start < 5
