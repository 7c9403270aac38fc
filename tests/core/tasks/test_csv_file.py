"""What a CSV file may hold, and the one sentence that refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import TaskError
from core.tasks.csv_file import MAX_BYTES, MAX_CLASSES, MAX_TEXT_CHARS, Rows, read_csv

HEADER = b"text,label\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def refusal(path: Path) -> str:
    with pytest.raises(TaskError) as caught:
        read_csv(path)
    message = str(caught.value)
    assert "\n" not in message
    assert "\0" not in message
    assert message.endswith(".")
    assert len(message) < 300
    return message


@pytest.mark.parametrize(
    ("raw", "texts", "labels"),
    [
        (b"text,label\na b,x\nc,y\n", ["a b", "c"], ["x", "y"]),
        (b"text,label\r\na,x\r\nc,y\r\n", ["a", "c"], ["x", "y"]),
        (b"text,label\na,x", ["a"], ["x"]),
        (b"\xef\xbb\xbftext,label\na,x\n", ["a"], ["x"]),
        (b"id,label,text\n1,x,a\n", ["a"], ["x"]),
        (b" text , label \na, x \n", ["a"], ["x"]),
        (b"text,label\na,x\n\n\nb,y\n\n", ["a", "b"], ["x", "y"]),
        (b'text,label\n"one, ""two""",x\n', ['one, "two"'], ["x"]),
        (b'text,label\n"one\ntwo\r\nthree",x\nb,y\n', ["one\ntwo\r\nthree", "b"], ["x", "y"]),
        (b"text,label\n<b onclick=x>&amp;</b>,<i>\n", ["<b onclick=x>&amp;</b>"], ["<i>"]),
        ("text,label\nnaïve 猫 🐈,ß\n".encode(), ["naïve 猫 🐈"], ["ß"]),
        (b"text,label\n=cmd(),x\n", ["=cmd()"], ["x"]),
    ],
    ids=[
        "plain",
        "windows lines",
        "no last line break",
        "byte order mark",
        "other columns",
        "spaces",
        "empty lines",
        "quotes",
        "line breaks in quotes",
        "html",
        "unicode",
        "formula",
    ],
)
def test_rows_are_read_as_they_stand(file: Path, raw: bytes, texts: list[str], labels: list[str]) -> None:
    file.write_bytes(raw)
    assert read_csv(file) == (texts, labels, None)


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"", ["is empty"]),
        (b" \n\t\n", ["is empty"]),
        (HEADER, ["has a header and no rows"]),
        (HEADER + b"\n\n", ["has a header and no rows"]),
        (b"\xef\xbb\xbf", ["lacks text and label"]),
        (b"review,label\na,x\n", ["'review, label'", "lacks text"]),
        (b"review,stars\na,5\n", ["'review, stars'", "lacks text and label"]),
        (b"text;label\na;x\n", ["'text;label'", "lacks text and label"]),
        (b"text,label,text\na,x,b\n", ["more than one column text"]),
        (b"label,text,label\na,x,b\n", ["more than one column label"]),
        (HEADER + b"a\0b,x\n", ["binary"]),
        ("text,label\na,x\n".encode("utf-16"), ["binary"]),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["binary"]),
        (HEADER + b"fine,x\ncaf\xe9,x\n", ["line 3", "not UTF-8"]),
        (HEADER + b"a,x\nb\n", ["line 3", "has 1 fields where the header has 2"]),
        (HEADER + b"a, b,x\n", ["line 2", "has 3 fields where the header has 2"]),
        (HEADER + b"a,x\n ,y\n", ["line 3", "empty text"]),
        (HEADER + b"a,\n", ["line 2", "empty label"]),
        (HEADER + b'a,x\n"b,y\nc,x\n', ["line 4", "not valid CSV"]),
        (HEADER + b'"a"b,x\n', ["line 2", "not valid CSV"]),
        (HEADER + b"a," + b"x" * 10_000 + b"\n", ["line 2", "the label 'xxx", "at most 100"]),
        (HEADER + b"a" * (MAX_TEXT_CHARS + 1) + b",x\n", ["line 2", "20,001 characters", "at most 20,000"]),
        (HEADER + b"a" * 200_000 + b",x\n", ["line 2"]),
        (HEADER + b"".join(b"a,%d\n" % i for i in range(MAX_CLASSES + 1)), ["101 different labels", "at most 100"]),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(file: Path, raw: bytes, parts: list[str]) -> None:
    file.write_bytes(raw)
    message = refusal(file)
    assert "'rows.csv'" in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    "raw",
    [
        b"text,text_b,label\na,b,x\nc,d,y\n",
        b"label,text_b,text\nx,b,a\ny,d,c\n",
        b"text,id, text_b ,label\na,1, b ,x\n\nc,2,d,y",
    ],
    ids=["plain", "another order", "other columns and spaces"],
)
def test_a_second_text_makes_a_row_a_pair(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    assert read_csv(file) == Rows(["a", "c"], ["x", "y"], ["b", "d"])


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"text,text_b,label\na,b,x\nc,,y\n", ["line 3", "empty text_b"]),
        (b"text,text_b,label\n,b,x\n", ["line 2", "empty text:"]),
        (b"text,text_b,label,text_b\na,b,x,c\n", ["more than one column text_b"]),
        (b"text,text_b,label\na,x\n", ["line 2", "has 2 fields where the header has 3"]),
        (b"text_a,text_b,label\na,b,x\n", ["lacks text"]),
        (b"text,text_b,label\na," + b"b" * (MAX_TEXT_CHARS + 1) + b",x\n", ["line 2", "a text_b of 20,001 char"]),
        (b"text,text_b,label\n", ["has a header and no rows"]),
    ],
)
def test_a_pair_that_cannot_be_used_is_refused_in_one_sentence(file: Path, raw: bytes, parts: list[str]) -> None:
    file.write_bytes(raw)
    message = refusal(file)
    for part in parts:
        assert part in message


def test_the_line_is_right_behind_quoted_line_breaks(file: Path) -> None:
    file.write_bytes(HEADER + b'"a\nb",x\nc,\n')
    assert "line 4" in refusal(file)


def test_a_text_at_the_limit_is_read(file: Path) -> None:
    file.write_bytes(HEADER + b"a" * MAX_TEXT_CHARS + b",x\n")
    assert len(read_csv(file)[0][0]) == MAX_TEXT_CHARS


def test_too_large_a_file_is_refused_before_it_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open("wb") as opened:
        opened.write(HEADER)
        opened.truncate(MAX_BYTES + 2**20)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    assert "has 51 MB and at most 50 MB are read" in refusal(file)


def test_too_many_rows_are_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.tasks.csv_file.MAX_ROWS", 3)
    file.write_bytes(HEADER + b"a,x\n" * 3)
    assert len(read_csv(file)[0]) == 3
    file.write_bytes(HEADER + b"a,x\n" * 4)
    assert "more than 3 rows" in refusal(file)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    assert "'rows.xlsx' is not a .csv file" in refusal(tmp_path / "rows.xlsx")


def test_capitals_in_the_suffix_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "ROWS.CSV").write_bytes(HEADER + b"a,x\n")
    assert read_csv(str(tmp_path / "ROWS.CSV")) == (["a"], ["x"], None)


@pytest.mark.parametrize("name", ["missing.csv", "no/such/folder.csv", "nul\0.csv", "x" * 300 + ".csv"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    refusal(tmp_path / name)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert "'folder.csv' was not found" in refusal(tmp_path / "folder.csv")
