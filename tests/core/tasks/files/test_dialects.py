"""Dialects of CSV and TSV files: each file gives the rows that a human reader sees."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import TaskError
from core.messages import Message
from core.tasks.files.delimited import Dialect, find_dialect, records
from tests.cases import each
from tests.core.tasks.files.test_tables import fields, opened

Rows = list[tuple[str, ...]]


def dialect_of(text: str, **options: Any) -> Dialect:
    return find_dialect(text, ReadingConfig(**options))


def read(text: str) -> list[tuple[int, tuple[str, ...]]]:
    rows = records(io.StringIO(text, newline=""), Dialect(","), "'rows.csv'")
    return [(line, () if isinstance(row, Message) else row) for line, row in rows]


HEADER = ("text", "label")
# File, columns, rows.
CASES: list[tuple[str, tuple[str, ...], Rows]] = [
    # RFC 4180
    ("text,label\r\na,x\r\nb,y\r\n", HEADER, [("a", "x"), ("b", "y")]),
    ("text,label\ra,x\rb,y", HEADER, [("a", "x"), ("b", "y")]),
    ('\ufeff"text","label"\n"a","x"\n', HEADER, [("a", "x")]),
    ('text,label\n"say ""a""",x\n"""",y\n', HEADER, [('say "a"', "x"), ('"', "y")]),
    ('text,label\n"a\nb",x\n"c\r\n\r\nd",y\n', HEADER, [("a\nb", "x"), ("c\r\n\r\nd", "y")]),
    ('text,label\n",",x\n"b",""\n', HEADER, [(",", "x"), ("b", "")]),
    # delimiters
    ("text\tlabel\na, b\tx\nc\ty\n", HEADER, [("a, b", "x"), ("c", "y")]),
    ('text;label\na, b;1,5\n"c; d";-2,25\n', HEADER, [("a, b", "1,5"), ("c; d", "-2,25")]),
    ("text|label\na, b; c|x\nd|y\n", HEADER, [("a, b; c", "x"), ("d", "y")]),
    ("text,label,\na,x,\nb,y,\n", ("text", "label", "column 3"), [("a", "x", ""), ("b", "y", "")]),
    # rows of different lengths
    (
        "text,label\na,x\n\n \nb\nc,y,z\nd,x\ne,y\nf,x\n",
        HEADER,
        [("a", "x"), ("b",), ("c", "y", "z"), ("d", "x"), ("e", "y"), ("f", "x")],
    ),
    # quotation marks that do not quote a field
    ('text,label\na 5" screen,x\nhe said "a" then,y\n', HEADER, [('a 5" screen', "x"), ('he said "a" then', "y")]),
    (
        'text\tlabel\n"so" he said\tx\n"a\ty\nb"\tx\nc\ty\n',
        HEADER,
        [('"so" he said', "x"), ('"a', "y"), ('b"', "x"), ("c", "y")],
    ),
    # a space before a quotation mark
    ('text, label\n"a ""b"", c", "x"\nd, y\n', HEADER, [('a "b", c', "x"), ("d", "y")]),
    (
        'label, text\nneg, "Nice film"\npos, "Good, or so"\n',
        HEADER[::-1],
        [("neg", "Nice film"), ("pos", "Good, or so")],
    ),
    # backslashes
    (
        'text,label\n"say \\"a, b\\" now",x\n"c",y\n"C:\\\\new\\\\\\"a\\"",x\n',
        HEADER,
        [('say "a, b" now', "x"), ("c", "y"), ('C:\\new\\"a"', "x")],
    ),
    ("text,label\na\\, b,x\nc\\, d,y\ne,x\n", HEADER, [("a, b", "x"), ("c, d", "y"), ("e", "x")]),
    ('text,label\n"C:\\dir\\",x\n"a\\b, c",y\n', HEADER, [("C:\\dir\\", "x"), ("a\\b, c", "y")]),
    # single quotes
    ("text,label\n'a, b','x'\n'c','y'\n'don''t','x'\n", HEADER, [("a, b", "x"), ("c", "y"), ("don't", "x")]),
    ("text|label\n'a|\\'b\\'', x\n'c'|y\n".replace(", ", "|"), HEADER, [("a|'b'", "x"), ("c", "y")]),
    # apostrophes
    (
        "text,label\n'tis so,x\nl'eau,y\nthe dogs',x\n'a',y\n",
        HEADER,
        [("'tis so", "x"), ("l'eau", "y"), ("the dogs'", "x"), ("'a'", "y")],
    ),
    ("text,label\n\"it's, well, 'fine'\",x\nb,y\n", HEADER, [("it's, well, 'fine'", "x"), ("b", "y")]),
]


@each(("text", "columns", "rows"), CASES)
def test_rows_are_those_that_a_person_reads(text: str, columns: tuple[str, ...], rows: Rows) -> None:
    table = opened(text)
    assert table.columns == columns
    assert fields(table) == list(table.preview) == rows
    assert table.dialect is not None
    settled = opened(text, encoding=table.encoding, header=table.header, **table.dialect._asdict())
    assert settled == table
    assert fields(settled) == rows


def test_given_settings_override_detection() -> None:
    text = "text,label\n" + "a,x\n" * 40 + '"b\\"c, d",x\n'
    for dialect in (Dialect(",", "'"), Dialect(",", ""), Dialect(";", '"', "\\")):
        assert opened(text, **dialect._asdict()).dialect == dialect


class TestDamage:
    """A few bad rows leave the others unchanged."""

    @each("row", ['"a "film" of 20",1\n', '"a" film,1\n', "a, b,1\n", "one\n", '"open,1\n'])
    @each("place", [0, 20, 49])
    def test_one_bad_row(self, row: str, place: int) -> None:
        rows = [f'"a film{", or more" * (i % 4)}",{i % 2}\n' for i in range(50)]
        rows.insert(place, row)
        assert dialect_of("".join(rows)) == Dialect(",")

    def test_commas_in_texts_do_not_hide_tabs(self) -> None:
        text = "".join(f"well, this{', and this' * (i % 4)}\t{i % 2}\n" for i in range(50))
        assert dialect_of(text).delimiter == "\t"
        assert opened("a, b\tx\nc, d\ty\n", "rows.tsv").format == "TSV"

    @each("text", ["", "one\ntwo\n", "a" * 300_000, '"' * 300_000, '",' * 100_000, "' '" * 90_000, "1\n" * 100_000])
    def test_no_text_takes_long(self, text: str) -> None:
        start = time.process_time()
        dialect_of(text)
        assert time.process_time() - start < 3


class TestRecords:
    def test_lines_are_counted_where_rows_begin(self) -> None:
        text = 'a,b\n\n"one\ntwo\r\nthree",x\n \nc,d\r\n"",\re,f'
        assert read(text) == [
            (1, ("a", "b")),
            (3, ("one\ntwo\r\nthree", "x")),
            (7, ("c", "d")),
            (8, ("", "")),
            (9, ("e", "f")),
        ]

    @each(
        ("text", "lines"),
        [
            ('a,b\n"c"d,e\nf,g\n', [1, 3]),
            ('a,b\n"c\n"d,e\nf,g\n', [1, 4]),
            ('a,b\n"c,d\n', [1]),
            ('a,b\n"', [1]),
        ],
    )
    def test_a_row_that_is_not_valid_has_no_fields_and_the_others_stay(self, text: str, lines: list[int]) -> None:
        rows = read(text)
        assert rows[1] == (2, ())
        assert [line for line, row in rows if row] == lines

    @each("end", ["", '"x,y\n'])
    def test_an_open_quote_that_swallows_many_rows_is_refused(self, end: str) -> None:
        text = 'text,label\n"c,d\n' + "e,f\n" * 50 + end
        for quote in "\"'":
            with pytest.raises(TaskError) as caught:
                fields(opened(text.replace('"', quote), quote=quote))
            assert str(caught.value) == (
                "'rows.csv', line 2 has a quotation mark that is not closed in its row: close it, or write "
                f"{quote}{quote} for a quotation mark within a quoted text."
            )
