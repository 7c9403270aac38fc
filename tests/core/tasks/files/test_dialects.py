"""Dialects of CSV and TSV files: each file gives the rows that a human reader sees."""

from __future__ import annotations

import csv
import io
import random
import time
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import TaskError
from core.tasks.files.delimited import DELIMITERS, Dialect, find_dialect, records
from core.tasks.files.tables import Table, open_table
from tests.cases import each

Rows = list[tuple[str, ...]]


def opened(text: str, name: str = "rows.csv", **options: Any) -> Table:
    return open_table(io.BytesIO(text.encode()), name, ReadingConfig(**options))


def fields(table: Table) -> Rows:
    return [row for _, row in table.records()]


def dialect_of(text: str, *, whole: bool = True, **options: Any) -> Dialect:
    return find_dialect(text, ReadingConfig(**options), whole=whole)


def read(text: str, *dialect: Any) -> list[tuple[int, tuple[str, ...]]]:
    return list(records(io.StringIO(text, newline=""), Dialect(*dialect)))


# Name, file, columns, rows.
CASES: list[tuple[str, str, tuple[str, ...], Rows]] = [
    # RFC 4180
    ("plain", "text,label\na,x\nb,y\n", ("text", "label"), [("a", "x"), ("b", "y")]),
    ("crlf", "text,label\r\na,x\r\nb,y\r\n", ("text", "label"), [("a", "x"), ("b", "y")]),
    ("cr", "text,label\ra,x\rb,y", ("text", "label"), [("a", "x"), ("b", "y")]),
    ("no line end", "text,label\na,x\nb,y", ("text", "label"), [("a", "x"), ("b", "y")]),
    ("byte order mark", "\ufefftext,label\na,x\n", ("text", "label"), [("a", "x")]),
    ("mark in front of quotes", '\ufeff"text","label"\n"a","x"\n', ("text", "label"), [("a", "x")]),
    ("all quoted", '"text","label"\n"a, b","x"\n"c","y"\n', ("text", "label"), [("a, b", "x"), ("c", "y")]),
    ("doubled", 'text,label\n"say ""a""",x\n"""b""",y\n', ("text", "label"), [('say "a"', "x"), ('"b"', "y")]),
    ("only quotes", 'text,label\n"""",x\nb,y\n', ("text", "label"), [('"', "x"), ("b", "y")]),
    ("line breaks", 'text,label\n"a\nb",x\n"c\r\n\r\nd",y\n', ("text", "label"), [("a\nb", "x"), ("c\r\n\r\nd", "y")]),
    ("empty quoted", 'text,label\n"",x\n"b",""\n', ("text", "label"), [("", "x"), ("b", "")]),
    ("delimiter within quotes", 'text,label\n",",x\n",,",y\n', ("text", "label"), [(",", "x"), (",,", "y")]),
    # delimiters
    ("tabs", "text\tlabel\na, b\tx\nc\ty\n", ("text", "label"), [("a, b", "x"), ("c", "y")]),
    ("semicolons", 'text;label\na, b;x\n"c; d";y\n', ("text", "label"), [("a, b", "x"), ("c; d", "y")]),
    ("bars", "text|label\na, b; c|x\nd|y\n", ("text", "label"), [("a, b; c", "x"), ("d", "y")]),
    (
        "trailing delimiter",
        "text,label,\na,x,\nb,y,\n",
        ("text", "label", "column 3"),
        [("a", "x", ""), ("b", "y", "")],
    ),
    ("decimal commas", "text;score\na;1,5\nb;-2,25\n", ("text", "score"), [("a", "1,5"), ("b", "-2,25")]),
    # rows of different lengths
    (
        "ragged",
        "text,label\na,x\nb\nc,y,z\nd,x\ne,y\nf,x\n",
        ("text", "label"),
        [("a", "x"), ("b",), ("c", "y", "z"), ("d", "x"), ("e", "y"), ("f", "x")],
    ),
    ("blank lines", "text,label\n\na,x\n \nb,y\n\n", ("text", "label"), [("a", "x"), ("b", "y")]),
    # quotation marks that do not quote a field
    ("inches", 'text,label\na 5" screen,x\n6" b,y\n', ("text", "label"), [('a 5" screen', "x"), ('6" b', "y")]),
    (
        "in the middle",
        'text,label\nhe said "a" then,x\nb,y\n',
        ("text", "label"),
        [('he said "a" then', "x"), ("b", "y")],
    ),
    (
        "plain in tabs",
        'text\tlabel\n"so" he said\tx\n"a\ty\nb"\tx\nc\ty\n',
        ("text", "label"),
        [('"so" he said', "x"), ('"a', "y"), ('b"', "x"), ("c", "y")],
    ),
    # a space before a quotation mark
    (
        "space",
        'label, text\nneg, "Nice film, number 3 of them"\npos, "a ""b"""\nneg, c\n',
        ("label", "text"),
        [("neg", "Nice film, number 3 of them"), ("pos", 'a "b"'), ("neg", "c")],
    ),
    (
        "space without a header",
        'neg, "Nice film, number 3 of them"\npos, "Nice film, number 4 of them"\nneg, "Another one, 5"\n',
        ("column 1", "column 2"),
        [
            ("neg", "Nice film, number 3 of them"),
            ("pos", "Nice film, number 4 of them"),
            ("neg", "Another one, 5"),
        ],
    ),
    (
        "space and no commas",
        'neg, "Nice film"\npos, "Good film"\nneg, "Bad film"\n',
        ("column 1", "column 2"),
        [("neg", "Nice film"), ("pos", "Good film"), ("neg", "Bad film")],
    ),
    ("space, all quoted", '"text", "label"\n"a, b", "x"\n"c", "y"\n', ("text", "label"), [("a, b", "x"), ("c", "y")]),
    ("space and semicolon", 'text; label\n"a; b"; "x"\n"c"; "y"\n', ("text", "label"), [("a; b", "x"), ("c", "y")]),
    ("spaces without quotes", "text, label\na b, x\nc, y\n", ("text", "label"), [("a b", " x"), ("c", " y")]),
    (
        "space and quotes within a text",
        'text,label\n"a, ""b"", c",x\n"d, ""e""",y\n',
        ("text", "label"),
        [('a, "b", c', "x"), ('d, "e"', "y")],
    ),
    # backslashes
    (
        "escaped",
        'text,label\n"say \\"a, b\\" now",x\n"c",y\n"\\"d\\"",x\n',
        ("text", "label"),
        [('say "a, b" now', "x"), ("c", "y"), ('"d"', "x")],
    ),
    (
        "escaped without a header",
        '"say \\"a, b\\" now, or then, at last",neg\n"c, as it is, and more of it",pos\n"\\"d\\", as he said",neg\n',
        ("column 1", "column 2"),
        [
            ('say "a, b" now, or then, at last', "neg"),
            ("c, as it is, and more of it", "pos"),
            ('"d", as he said', "neg"),
        ],
    ),
    (
        "escaped backslashes",
        'text,label\n"C:\\\\new\\\\\\"a\\"",x\n"b\\\\",y\n"c",y\n',
        ("text", "label"),
        [('C:\\new\\"a"', "x"), ("b\\", "y"), ("c", "y")],
    ),
    (
        "escaped delimiter",
        "text,label\na\\, b,x\nc\\, d,y\ne,x\n",
        ("text", "label"),
        [("a, b", "x"), ("c, d", "y"), ("e", "x")],
    ),
    ("escaped with tabs", 'text\tlabel\n"a \\"b\\""\tx\n"c"\ty\n', ("text", "label"), [('a "b"', "x"), ("c", "y")]),
    (
        "backslashes that escape nothing",
        'text,label\n"C:\\dir\\",x\n"a\\b, c",y\n\\n and \\_,x\n',
        ("text", "label"),
        [("C:\\dir\\", "x"), ("a\\b, c", "y"), ("\\n and \\_", "x")],
    ),
    (
        "escaped and never enclosed",
        'text\tlabel\na \\"b\\"\tx\n5\\" c\ty\nd\tx\n',
        ("text", "label"),
        [('a "b"', "x"), ('5" c', "y"), ("d", "x")],
    ),
    # single quotes
    (
        "single",
        "text,label\n'a, b','x'\n'c','y'\n'd, e','x'\n",
        ("text", "label"),
        [("a, b", "x"), ("c", "y"), ("d, e", "x")],
    ),
    (
        "single, some",
        "text,label\n'a, b',x\nc,y\nd,x\n'e, f',y\n",
        ("text", "label"),
        [("a, b", "x"), ("c", "y"), ("d", "x"), ("e, f", "y")],
    ),
    ("single, doubled", "text,label\n'don''t, ever',x\n'c',y\n", ("text", "label"), [("don't, ever", "x"), ("c", "y")]),
    (
        "single, escaped",
        "text,label\n'don\\'t, ever',x\n'c',y\n",
        ("text", "label"),
        [("don't, ever", "x"), ("c", "y")],
    ),
    (
        "single, semicolons",
        "text;label\n'a; b';'x'\n'c \"d\"';'y'\n",
        ("text", "label"),
        [("a; b", "x"), ('c "d"', "y")],
    ),
    ("single and space", "text, label\n'a, b', 'x'\n'c', 'y'\n", ("text", "label"), [("a, b", "x"), ("c", "y")]),
    (
        "titles",
        "text\tlabel\n'Alien'\tx\nnice\ty\ndon't\tx\ngood\ty\n",
        ("text", "label"),
        [("'Alien'", "x"), ("nice", "y"), ("don't", "x"), ("good", "y")],
    ),
    (
        "single, where they are needed",
        "text\tlabel\n'don''t'\tx\nnice\ty\n'it''s ''so'''\tx\n",
        ("text", "label"),
        [("don't", "x"), ("nice", "y"), ("it's 'so'", "x")],
    ),
    # apostrophes
    (
        "don't",
        "text,label\nI don't,x\nyou can't,y\nit's,x\n",
        ("text", "label"),
        [("I don't", "x"), ("you can't", "y"), ("it's", "x")],
    ),
    (
        "l'eau",
        "texte,classe\nl'eau,x\nd'accord,y\nj'ai,x\n",
        ("texte", "classe"),
        [("l'eau", "x"), ("d'accord", "y"), ("j'ai", "x")],
    ),
    (
        "in front",
        "text,label\n'tis so,x\n'twas,y\nthe dogs',x\n'cause,y\n",
        ("text", "label"),
        [("'tis so", "x"), ("'twas", "y"), ("the dogs'", "x"), ("'cause", "y")],
    ),
    (
        "at both ends of some",
        "text,label\n'Alien' is good,x\nI saw 'Alien',y\nboth,x\nthe end,x\n",
        ("text", "label"),
        [("'Alien' is good", "x"), ("I saw 'Alien'", "y"), ("both", "x"), ("the end", "x")],
    ),
    (
        "within double quotes",
        "text,label\n\"it's, well, 'fine'\",x\n\"'a', 'b'\",y\n\"don't, won't\",x\n",
        ("text", "label"),
        [("it's, well, 'fine'", "x"), ("'a', 'b'", "y"), ("don't, won't", "x")],
    ),
]


@each(("text", "columns", "rows"), [case[1:] for case in CASES])
def test_rows_are_those_that_a_person_reads(text: str, columns: tuple[str, ...], rows: Rows) -> None:
    table = opened(text)
    assert table.columns == columns
    assert fields(table) == list(table.preview) == rows
    assert table.dialect is not None
    settled = opened(text, encoding=table.encoding, header=table.header, **table.dialect._asdict())
    assert settled == table
    assert fields(settled) == rows


@each("delimiter", DELIMITERS)
def test_the_rows_of_a_csv_writer_are_read(delimiter: str) -> None:
    words = [
        "good",
        "bad, really",
        "well; no",
        "don't",
        'a "b" c',
        "l'eau",
        "café",
        "猫",
        "C:\\x",
        "1,5",
        "a\nb",
        "a|b",
    ]
    for seed, (quote, escape, space) in enumerate([('"', "", ""), ("'", "", ""), ('"', "\\", ""), ('"', "", " ")]):
        rng = random.Random(seed)
        rows = [(" ".join(rng.choices(words, k=rng.randint(2, 9))), rng.choice(["neg", "pos"])) for _ in range(100)]
        out = io.StringIO()
        writer = csv.writer(
            out,
            delimiter=delimiter,
            quotechar=quote,
            escapechar=escape or None,
            doublequote=not escape,
            quoting=csv.QUOTE_ALL,
        )
        writer.writerows([("text", "label"), *rows])
        text = out.getvalue().replace(f"{quote}{delimiter}{quote}", f"{quote}{delimiter}{space}{quote}")
        assert fields(opened(text)) == rows


def test_given_settings_override_detection() -> None:
    text = "text,label\n" + "a,x\n" * 40 + '"b\\"c, d",x\n'
    for dialect in (Dialect(",", "'"), Dialect(",", ""), Dialect(";", '"', "\\"), Dialect(",", '"', "", True)):
        assert opened(text, **dialect._asdict()).dialect == dialect


def test_a_config_from_before_there_were_quotes_detects_them() -> None:
    old = ReadingConfig.model_validate_json('{"delimiter": ",", "header": true, "encoding": "utf-8"}')
    assert fields(open_table(io.BytesIO(b'text,label\n"a, b",x\n'), "rows.csv", old)) == [("a, b", "x")]


class TestDamage:
    """A few bad rows leave the others unchanged."""

    @each("row", ['"a "film" of 20",1\n', '"a" film,1\n', "a, b,1\n", "one\n", '"open,1\n'])
    @each("place", [0, 20, 49])
    def test_one_bad_row(self, row: str, place: int) -> None:
        rows = [f'"a film{", or more" * (i % 4)}",{i % 2}\n' for i in range(50)]
        rows.insert(place, row)
        assert dialect_of("".join(rows)) == Dialect(",")

    @each("seed", range(5))
    def test_stray_quotes_between_tabs_are_plain(self, seed: int) -> None:
        rng = random.Random(seed)
        texts = [" ".join(rng.choices(["it", 'said "so', '"well"', "and", 'then"', '"no,'], k=8)) for _ in range(100)]
        text = "sentence\tlabel\n" + "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(texts))
        assert [row[0] for row in fields(opened(text))] == texts

    def test_the_cut_last_row_of_a_sample_does_not_count(self) -> None:
        assert dialect_of("a;b\nc;d\n" * 2 + '"e, f', whole=False) == Dialect(";")

    def test_commas_in_texts_do_not_hide_tabs(self) -> None:
        text = "".join(f"well, this{', and this' * (i % 4)}\t{i % 2}\n" for i in range(50))
        assert dialect_of(text).delimiter == "\t"
        assert opened("a, b\tx\nc, d\ty\n", "rows.tsv").delimiter == "\t"

    def test_quotes_behind_the_sample_enclose(self) -> None:
        rows = "text,label\n" + "a film,x\n" * 40_000
        assert fields(opened(rows + '"b ""c"", d",y\n'))[-1] == ('b "c", d', "y")

    @each("text", ["", "one\ntwo\n", "a" * 300_000, '"' * 300_000, '",' * 100_000, "' '" * 90_000, "1\n" * 100_000])
    def test_no_text_takes_long(self, text: str) -> None:
        start = time.process_time()
        dialect_of(text)
        assert time.process_time() - start < 3


class TestRecords:
    def test_lines_are_counted_where_rows_begin(self) -> None:
        text = 'a,b\n\n"one\ntwo\r\nthree",x\n \nc,d\r\n"",\re,f'
        assert read(text, ",") == [
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
        rows = read(text, ",")
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

    def test_a_field_beyond_the_limit_of_the_csv_module_is_read(self) -> None:
        assert read("x" * 200_000 + ",y", ",") == [(1, ("x" * 200_000, "y"))]
