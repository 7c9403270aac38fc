"""Files as tables: contents, detection of the format, and the error message for all other files."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import TaskError
from core.tasks.files.tables import Table, named_columns, open_table
from tests.cases import each

HEADER = b"text,label\n"


def opened(raw: bytes, name: str = "rows.csv", **options: Any) -> Table:
    return open_table(io.BytesIO(raw), name, ReadingConfig(**options))


def fields(table: Table) -> list[tuple[str, ...]]:
    return [row for _, row in table.records()]


def lines(table: Table) -> list[int]:
    return [line for line, _ in table.records()]


def refusal(source: Path | io.BytesIO, name: str | None = None) -> str:
    with pytest.raises(TaskError) as caught:
        list(open_table(source, name).records())
    message = str(caught.value)
    assert message.isprintable()
    assert message.endswith(".")
    assert len(message) < 300
    return message


class TestDelimited:
    def test_a_wrongly_settled_encoding_is_refused_with_its_line(self) -> None:
        raw = HEADER + b"fine,x\n" * 50_000 + "größer,x\n".encode("cp1252")
        with pytest.raises(TaskError, match=r"'rows.csv', line 50,002, is not valid UTF-8"):
            list(opened(raw, encoding="utf-8").records())

    def test_without_a_header_the_columns_are_numbered(self) -> None:
        table = opened(b"A film that I liked a lot.\t1\nNot so good, really.\t0\n", "yelp_labelled.txt")
        assert (table.format, table.header, table.columns) == ("TSV", False, ("column 1", "column 2"))
        assert fields(table) == [("A film that I liked a lot.", "1"), ("Not so good, really.", "0")]
        assert lines(table) == [1, 2]

    @each(("header", "first"), [(True, ("a", "x")), (False, ("text", "label")), (None, ("a", "x"))])
    def test_a_header_can_be_settled(self, header: bool | None, first: tuple[str, ...]) -> None:
        table = opened(b"text,label\na,x\n", header=header)
        assert table.header == (header is not False)
        assert fields(table)[0] == first == table.preview[0]

    def test_the_preview_has_the_first_rows(self) -> None:
        table = opened(HEADER + b"".join(b"a%d,x\n" % i for i in range(50_000)))
        assert len(table.preview) == 200
        assert list(table.preview) == fields(table)[:200]

    def test_it_can_be_read_again_and_a_file_left_half_way(self) -> None:
        source = io.BytesIO(HEADER + b"a,x\nb,y\n" * 10_000)
        table = open_table(source, "rows.csv")
        half = table.records()
        next(half)
        half.close()
        assert not source.closed
        assert list(table.records()) == list(table.records())
        assert not source.closed


class TestJsonLines:
    def test_values_keep_their_written_form(self) -> None:
        raw = b'{"text": "a", "label": 1}\n{"text": "b", "label": 1.50}\n\n{"text": null, "label": true, "more": 1e5}\n'
        table = opened(raw, "rows.jsonl")
        assert (table.format, table.columns, table.encoding) == ("JSONL", ("text", "label", "more"), "utf-8")
        assert list(table.records()) == [(1, ("a", "1", "")), (2, ("b", "1.50", "")), (4, ("", "true", "1e5"))]

    @each(
        ("written", "text"),
        [
            ('["1", 1, "1.0", 1.5, true, "true", null, "null", ""]', None),
            ('{"n": 1, "t": "1", "more": {"list": [[], {}, [0, [null]]], "": false}}', None),
            (r'["caf\u00e9", "\ud83d\ude00", "猫", "a\"b", "\n", "\/"]', r'["café", "😀", "猫", "a\"b", "\n", "/"]'),
            ('{"é":1,"b":[ 2 ,3 ]}', '{"é": 1, "b": [2, 3]}'),
            ("[" * 400 + "1" + "]" * 400, None),
        ],
    )
    def test_nested_values_are_json(self, written: str, text: str | None) -> None:
        raw = '{"text": "a", "label": %s}\n{"text": %s, "label": "x"}\n' % (written, written)  # noqa: UP031
        table = opened(raw.encode(), "rows.jsonl")
        wanted = written if text is None else text
        assert fields(table) == [("a", wanted), (wanted, "x")]
        assert table.preview == (("a", wanted[:2_048]), (wanted[:2_048], "x"))

    def test_what_is_no_object_has_no_fields(self) -> None:
        bad = ["[1]", "3", '{"text": ', '"text"', '{"text": "\\ud800"}', "{'text': 1}", "[" * 100_000, "null", "x"]
        raw = "\n".join(['{"text": "a", "label": "x"}', *bad, '{"text": "\\ud83d\\ude00", "label": "y"}'])
        table = opened(raw.encode(), "rows.json")
        assert fields(table) == [("a", "x"), *[()] * len(bad), ("😀", "y")]
        assert lines(table) == list(range(1, len(bad) + 3))

    def test_a_huge_number_is_no_trouble(self) -> None:
        assert fields(opened(b'{"text": "a", "label": ' + b"9" * 10_000 + b"}", "rows.json"))[0][1] == "9" * 10_000

    def test_encodings_are_found(self) -> None:
        lines = [json.dumps({"text": "정말 재미있게 봤습니다.", "label": "긍정"}, ensure_ascii=False)] * 3
        for codec in ("cp949", "utf-16", "utf-8-sig"):
            table = opened("\r\n".join(lines).encode(codec), "rows.jsonl")
            assert fields(table) == [("정말 재미있게 봤습니다.", "긍정")] * 3

    def test_a_key_that_first_stands_far_down_is_a_column(self) -> None:
        rows = [{"text": f"text {i}", "label": i % 2} for i in range(300)]
        for row in rows[210:]:
            row["split"] = "test"
        rows[250]["note"] = "x" * 5_000
        table = opened("\n".join(map(json.dumps, rows)).encode(), "rows.jsonl")
        assert table.columns == ("text", "label", "split", "note")
        whole = [(row["text"], str(row["label"]), row.get("split", ""), row.get("note", "")) for row in rows]
        assert fields(table) == whole
        shown = [whole[i] for i in (*range(200), 210, 250)]
        assert list(table.preview) == [tuple(cell[:2_048] for cell in row) for row in shown]

    @each("raw", [b'[{"text": "a"},\n{"text": "b"}]', b'{\n"text": "a"\n}', b"[]", b"{}\n{}", b"text"])
    def test_other_json_is_refused(self, raw: bytes) -> None:
        assert "line 1, is not a JSON object with values: write one object on each line" in refusal(
            io.BytesIO(raw), "rows.json"
        )


@each(
    ("cells", "names"),
    [
        (["text", "label"], ("text", "label")),
        ([" a\tb ", ""], ("a b", "column 2")),
        (["a", "a", "a"], ("a", "a (2)", "a (3)")),
        (["a (2)", "a", "a", "a", "a (2)"], ("a (2)", "a", "a (3)", "a (4)", "a (2) (2)")),
        (["column 2", ""], ("column 2", "column 2 (2)")),
        (["x" * 500], ("x" * 180 + "…",)),
    ],
)
def test_columns_have_names_that_can_be_told_apart(cells: list[str], names: tuple[str, ...]) -> None:
    assert named_columns(cells) == names


def archived(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, b"text,label\n")
    return out.getvalue()


class TestOtherFiles:
    @each(
        ("raw", "what"),
        [
            (archived("rows.csv"), "a compressed archive, not CSV: unpack it first."),
            (archived("xl/workbook.xml"), "a spreadsheet, not CSV: save its sheet as CSV in UTF-8."),
            (gzip.compress(HEADER), "a compressed archive"),
            (bz2.compress(HEADER), "a compressed archive"),
            (lzma.compress(HEADER), "a compressed archive"),
            (b"\0" * 257 + b"ustar\x0000", "a compressed archive"),
            (b"PAR1" + b"\0" * 20 + b"PAR1", "a Parquet file by its content, not CSV: give it the suffix .parquet."),
            (b"%PDF-1.7\n", "a PDF file"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file"),
            (b"\n<!DOCTYPE html><html>", "a web page or XML"),
        ],
    )
    def test_they_are_recognised_whatever_their_suffix(self, raw: bytes, what: str) -> None:
        assert refusal(io.BytesIO(raw), "rows.csv").startswith(f"'rows.csv' is {what}")
        assert what.split(",", maxsplit=1)[0] in refusal(io.BytesIO(raw), "rows.xyz")

    @each("name", ["rows.xlsx", "rows", "rows.csv.bak", ".csv", "rows.docx"])
    def test_other_suffixes_are_refused(self, name: str) -> None:
        message = refusal(io.BytesIO(HEADER), name)
        assert "has none of the suffixes .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet" in message

    @each("raw", [pickle.dumps([1], protocol=4), b"\x89PNG\r\n\x1a\n\0\0", b"SQLite format 3\0"])
    def test_other_binary_files_are_no_text(self, raw: bytes) -> None:
        assert "'rows.csv' holds binary data, not text" in refusal(io.BytesIO(raw), "rows.csv")

    def test_a_parquet_file_begins_like_one(self) -> None:
        assert "is not a Parquet file or is damaged" in refusal(io.BytesIO(HEADER), "rows.parquet")

    def test_capitals_in_the_suffix_do_not_matter(self) -> None:
        assert fields(opened(HEADER + b"a,x\n", "ROWS.CSV")) == [("a", "x")]

    def test_a_name_is_shown_safely(self) -> None:
        assert refusal(io.BytesIO(b""), "a\nb\x1b[31m" + "x" * 200 + ".csv").startswith("'a\\nb")


class TestPaths:
    def test_a_file_is_read_by_its_path(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_bytes(HEADER + b"a,x\n")
        table = open_table(path)
        assert (table.name, fields(table)) == ("rows.csv", [("a", "x")])

    @pytest.mark.parametrize("name", ["missing.csv", "no/such/folder.csv", "nul\0.csv", "x" * 300 + ".csv"])
    def test_a_missing_file_is_refused(self, tmp_path: Path, name: str) -> None:
        refusal(tmp_path / name)

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "folder.csv").mkdir()
        assert "'folder.csv' is not a file" in refusal(tmp_path / "folder.csv")

    def test_a_fifo_is_refused_and_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "rows.csv")
        assert "is not a file" in refusal(tmp_path / "rows.csv")

    def test_a_file_that_goes_away_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_bytes(HEADER + b"a,x\n")
        table = open_table(path)
        path.unlink()
        with pytest.raises(TaskError, match="was not found"):
            list(table.records())

    def test_a_closed_upload_is_refused(self) -> None:
        source = io.BytesIO(HEADER)
        source.close()
        assert "closed file" in refusal(source, "rows.csv")


class TestLimits:
    def test_too_large_a_file_is_refused_before_it_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "5")
        path = tmp_path / "rows.csv"
        with path.open("wb") as file:
            file.write(HEADER)
            file.truncate(6 * 2**20)
        monkeypatch.setattr("core.tasks.files.tables.detect_encoding", lambda *_: pytest.fail("it was read"))
        message = refusal(path)
        assert "has 6.0 MB, but at most 5 MB are read: give fewer rows, or raise SCL_MAX_FILE_MB." in message

    @pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
    def test_too_many_columns_are_refused(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_COLUMNS", "3")
        four = ["a", "b", "c", "d"]
        raw = json.dumps(dict.fromkeys(four, "x")) if name.endswith("l") else ",".join(four) + "\n1,2,3,4"
        message = refusal(io.BytesIO(raw.encode()), name)
        many = (
            "has more than 3 columns (line 1 has one too many)"
            if name.endswith("l")
            else "has 4 columns, but at most 3 are read"
        )
        assert f"{many}: give fewer, or raise SCL_MAX_COLUMNS." in message

    def test_too_many_keys_are_refused_where_one_is_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_COLUMNS", "3")
        raw = b"".join(b'{"text": "a", "label": 1, "key %d": 2}\n' % (i // 300) for i in range(1_000))
        assert "has more than 3 columns (line 301 has one too many): give fewer" in refusal(
            io.BytesIO(raw), "rows.jsonl"
        )

    @pytest.mark.parametrize("cells", ["a,", ",", "a (2),a,", "1,"])
    def test_very_many_columns_take_no_time(self, cells: str, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = (cells * 30_000)[:40_000] + "\n" + "1,2\n" * 5_000
        start = time.process_time()
        for header in (True, False, None):
            table = f"text,label\n{raw}" if header is None else raw
            with suppress(TaskError):
                open_table(io.BytesIO(table.encode()), "rows.csv", ReadingConfig(header=header))
        monkeypatch.setenv("SCL_MAX_COLUMNS", "100000")
        with suppress(TaskError):
            open_table(io.BytesIO(raw.encode()), "rows.csv", ReadingConfig(header=True, delimiter=","))
        assert time.process_time() - start < 5

    def test_a_line_without_end_is_refused(self) -> None:
        assert "a line of more than 16 MB" in refusal(io.BytesIO(HEADER + b"a" * (20 * 2**20)), "rows.csv")
