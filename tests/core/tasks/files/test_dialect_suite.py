"""Files in many dialects, each with the rows that a person reads in it."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import TaskError
from core.tasks.files.delimited import Dialect
from core.tasks.files.reading import read_rows
from core.tasks.files.tables import Table, open_table
from tests.cases import each

Rows = list[tuple[str, ...]]


def opened(text: str | bytes, name: str = "rows.csv", **options: Any) -> Table:
    raw = text.encode() if isinstance(text, str) else text
    return open_table(io.BytesIO(raw), name, ReadingConfig(**options))


def fields(table: Table) -> Rows:
    return [row for _, row in table.records()]


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
    # rows of other lengths
    (
        "ragged",
        "text,label\na,x\nb\nc,y,z\nd,x\ne,y\nf,x\n",
        ("text", "label"),
        [("a", "x"), ("b",), ("c", "y", "z"), ("d", "x"), ("e", "y"), ("f", "x")],
    ),
    ("blank lines", "text,label\n\na,x\n \nb,y\n\n", ("text", "label"), [("a", "x"), ("b", "y")]),
    # quotation marks that enclose nothing
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
    # a space in front of a quotation mark
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
        "single, where they are needed",
        "text\tlabel\n'don''t'\tx\nnice\ty\n'it''s ''so'''\tx\n",
        ("text", "label"),
        [("don't", "x"), ("nice", "y"), ("it's 'so'", "x")],
    ),
    # apostrophes
    (
        "titles",
        "text\tlabel\n'Alien'\tx\nnice\ty\ndon't\tx\ngood\ty\n",
        ("text", "label"),
        [("'Alien'", "x"), ("nice", "y"), ("don't", "x"), ("good", "y")],
    ),
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
    assert fields(table) == rows
    assert list(table.preview) == rows


@each(("text", "columns", "rows"), [case[1:] for case in CASES])
def test_what_was_found_reads_the_same_rows_again(text: str, columns: tuple[str, ...], rows: Rows) -> None:
    """A reading that is settled, as a run keeps it, guesses nothing."""
    found = opened(text)
    assert found.dialect is not None
    settled = opened(text, encoding=found.encoding, header=found.header, **found.dialect._asdict())
    assert settled == found
    assert fields(settled) == rows
    assert settled.columns == columns


@pytest.mark.slow
@each(("text", "columns", "rows"), [case[1:] for case in CASES])
def test_a_long_file_is_read_as_its_beginning(text: str, columns: tuple[str, ...], rows: Rows) -> None:
    """Too many rows to look at more than the beginning, and every row is read."""
    header = columns[0] != "column 1"
    table = opened(text)
    if not text.endswith(("\n", "\r")):
        text += "\r" if "\r" in text and "\n" not in text else "\n"
    body = text[len(text.splitlines(keepends=True)[0]) :] if header else text
    times = 140_000 // len(body)
    long = opened(text + body * times)
    assert long.dialect == table.dialect
    assert fields(long) == rows * (times + 1)


class TestOpenQuotes:
    def test_at_the_end_of_a_file(self) -> None:
        reading = read_rows(opened('text,label\n"a, b",x\n"c",y\nd,"x\n'))
        assert reading.rows.texts == ("a, b", "c")
        (problem,) = reading.problems
        assert problem.line == 4
        assert str(problem.message) == "Line 4 has a quotation mark in field 2 that is not closed where it should be."

    @each(("row", "number"), [('"c,y', 1), ('c,"y', 2), ('"c\nd","y', 2)])
    def test_in_the_middle(self, row: str, number: int) -> None:
        text = "text,label\n" + '"a, b",x\n' * 30 + f"{row}\n" + "d,x\n" * 40
        with pytest.raises(TaskError) as caught:
            fields(opened(text))
        assert str(caught.value) == (
            f"'rows.csv', line 32 has a quotation mark in field {number} that is not closed in its row: close it, "
            'or write "" for a quotation mark within a quoted text.'
        )

    def test_one_that_a_later_one_closes_is_a_row_that_does_not_fit(self) -> None:
        rows = ['"a, b",x\n'] * 30
        rows[10] = '"c,y\n'
        reading = read_rows(opened("text,label\n" + "".join(rows)))
        assert reading.rows.texts == ("a, b",) * 28
        (problem,) = [problem for problem in reading.problems if problem.kind == "fields"]
        assert str(problem.message) == (
            "Line 12 has a quotation mark in field 1 that is not closed where it should be; "
            "1 line behind it went with it."
        )

    def test_the_remedies_work(self) -> None:
        text = 'text,label\n"a",x\n"c,y\n' + "d,x\n" * 40
        assert fields(opened(text, quote=""))[:3] == [('"a"', "x"), ('"c', "y"), ("d", "x")]

    def test_single_quotes_that_are_settled(self) -> None:
        with pytest.raises(TaskError, match=r"line 2 has a quotation mark in field 1 .* write '' for"):
            fields(opened("text,label\n'tis,x\n" + "d,x\n" * 40, quote="'"))


class TestWhatIsSettled:
    def test_quotes(self) -> None:
        text = "text,label\n'a',x\n\"b\",y\n"
        assert fields(opened(text, quote="'")) == [("a", "x"), ('"b"', "y")]
        assert fields(opened(text, quote='"')) == [("'a'", "x"), ("b", "y")]
        assert fields(opened(text, quote="")) == [("'a'", "x"), ('"b"', "y")]

    def test_escapes(self) -> None:
        text = "text,label\na\\b,x\nc\\, d,y\n"
        assert fields(opened(text, escape="")) == [("a\\b", "x"), ("c\\", " d", "y")]
        assert fields(opened(text, escape="\\")) == [("ab", "x"), ("c, d", "y")]

    def test_spaces(self) -> None:
        text = 'text,label\na, "x"\nb, "y"\n'
        assert fields(opened(text, skip_initial_space=False)) == [("a", ' "x"'), ("b", ' "y"')]
        assert fields(opened(text, skip_initial_space=True)) == [("a", "x"), ("b", "y")]

    @each("far", [False, True])
    def test_what_is_settled_is_never_guessed_otherwise(self, far: bool) -> None:
        text = "text,label\n" + "a,x\n" * (40_000 if far else 0) + '"b\\"c, d",x\n'
        for quote in ('"', "'", ""):
            for escape in ("", "\\"):
                for skip in (False, True):
                    table = opened(text, quote=quote, escape=escape, skip_initial_space=skip)
                    assert table.dialect == Dialect(",", quote, escape, skip)

    def test_a_config_from_before_there_were_quotes_guesses_them(self) -> None:
        old = ReadingConfig.model_validate_json('{"delimiter": ",", "header": true, "encoding": "utf-8"}')
        assert (old.quote, old.escape, old.skip_initial_space) == (None, None, None)
        table = open_table(io.BytesIO(b'text,label\n"a, b",x\n'), "rows.csv", old)
        assert fields(table) == [("a, b", "x")]


class TestFarDown:
    """The beginning of a file has no quotation mark; all of it is looked at."""

    PLAIN = "text,label\n" + "a film,x\n" * 20_000

    @each(
        ("rows", "read"),
        [
            ('"b, c",y\n', [("b, c", "y")]),
            ('"b ""c"", d",y\n', [('b "c", d', "y")]),
            ('"b \\"c\\", d",y\n', [('b "c", d', "y")]),
            ('"b, c", "y, z"\n', [("b, c", "y, z")]),
            ('"b c,y\nb" d,y\n', [('"b c', "y"), ('b" d', "y")]),
        ],
    )
    def test_quotes_are_seen(self, rows: str, read: Rows) -> None:
        assert fields(opened(self.PLAIN + rows * 3))[20_000:] == read * 3

    def test_what_is_settled_stays(self) -> None:
        rows = '"b c,y\nb" d,y\n' * 3
        for options in ({"skip_initial_space": True}, {"escape": "\\"}, {"escape": "", "skip_initial_space": False}):
            dialect = opened(self.PLAIN + rows, **options).dialect
            assert dialect is not None
            assert dialect.quote == ""
            assert {key: getattr(dialect, key) for key in options} == options

    def test_apostrophes_that_open_nothing_are_seen(self) -> None:
        begin = "text,label\n" + "'a film, and more',x\nanother,y\n" * 4_000
        assert fields(opened(begin))[0] == ("a film, and more", "x")
        table = opened(begin + "'tis the season,y\n" * 9_000)
        assert fields(table)[-1] == ("'tis the season", "y")


@each("quote", ['"', "'"])
@each("escape", ["", "\\"])
@each("space", ["", " "])
@each("delimiter", [",", ";", "|", "\t"])
@each("quoting", [csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
def test_what_a_writer_of_the_dialect_writes_is_read(
    quote: str, escape: str, space: str, delimiter: str, quoting: int
) -> None:
    words = [
        "good",
        "bad, really",
        "well; no",
        "a|b",
        "don't",
        'a "b" c',
        "l'eau",
        "café",
        "猫",
        "so-so",
        "C:\\x",
        "1,5",
    ]
    for seed in range(4):
        rng = random.Random(f"{quote}{escape}{space}{delimiter}{seed}")
        size = rng.choice([30, 300])
        rows = [(" ".join(rng.choices(words, k=rng.randint(2, 9))), rng.choice(["neg", "pos"])) for _ in range(size)]
        out = io.StringIO()
        writer = csv.writer(
            out,
            delimiter=delimiter,
            quotechar=quote,
            escapechar=escape or None,
            doublequote=not escape,
            quoting=quoting,
        )
        writer.writerows([("text", "label"), *rows])
        text = out.getvalue().replace(f"{quote}{delimiter}{quote}", f"{quote}{delimiter}{space}{quote}")
        assert fields(opened(text)) == rows, json.dumps(opened(text).dialect)
