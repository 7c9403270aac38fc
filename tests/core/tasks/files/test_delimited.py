"""Lines of delimited files as rows, in a dialect that is known."""

from __future__ import annotations

import csv
import io
import random
from typing import Any

import pytest

from core.errors import TaskError
from core.tasks.files.delimited import Dialect, records
from core.tasks.files.dialects import DELIMITERS
from tests.cases import each

WORDS = ["good", "bad, really", "well; no", "a|b", "it's", '5" screen', "", "1,000", "café", "猫", "=)", "so-so"]


def read(text: str, delimiter: str = ",", quote: str = '"', **options: Any) -> list[tuple[int, tuple[str, ...]]]:
    return list(records(io.StringIO(text, newline=""), Dialect(delimiter, quote, **options)))


class TestRecords:
    def test_lines_are_counted_where_rows_begin(self) -> None:
        text = 'a,b\n\n"one\ntwo\r\nthree",x\n \nc,d\r\n"",\ne,f'
        assert read(text) == [
            (1, ("a", "b")),
            (3, ("one\ntwo\r\nthree", "x")),
            (7, ("c", "d")),
            (8, ("", "")),
            (9, ("e", "f")),
        ]

    def test_every_line_end_counts_once(self) -> None:
        assert [line for line, _ in read("a,b\rc,d\r\ne,f\ng,h")] == [1, 2, 3, 4]

    def test_a_row_that_is_not_valid_has_no_fields_and_the_others_stay(self) -> None:
        assert read('a,b\n"c"d,e\nf,g\n') == [(1, ("a", "b")), (2, ()), (3, ("f", "g"))]
        assert read('a,b\n"c\n"d,e\nf,g\n') == [(1, ("a", "b")), (2, ()), (4, ("f", "g"))]

    def test_a_last_row_with_an_open_quote_is_not_valid(self) -> None:
        assert read('a,b\n"c,d\n') == [(1, ("a", "b")), (2, ())]
        assert read('a,b\n"') == [(1, ("a", "b")), (2, ())]

    @each("end", ["", '"x,y\n'])
    def test_an_open_quote_that_takes_many_rows_along_is_refused(self, end: str) -> None:
        with pytest.raises(TaskError, match=r"^line 2 has a quotation mark in field 1 that is not closed in its row"):
            read('a,b\n"c,d\n' + "e,f\n" * 50 + end)

    def test_quotes_can_be_plain_characters(self) -> None:
        assert read('"a\tb"\n"\tc\n', "\t", "") == [(1, ('"a', 'b"')), (2, ('"', "c"))]

    def test_a_field_beyond_the_limit_of_the_csv_module_is_read(self) -> None:
        assert read("x" * 200_000 + ",y") == [(1, ("x" * 200_000, "y"))]

    @each("delimiter", DELIMITERS)
    def test_what_the_csv_module_writes_is_read(self, delimiter: str) -> None:
        rng = random.Random(delimiter)
        for _ in range(50):
            rows = [tuple(rng.choice([*WORDS, "a\nb", 'q"q']) for _ in range(3)) for _ in range(20)]
            out = io.StringIO()
            csv.writer(out, delimiter=delimiter).writerows(rows)
            assert [fields for _, fields in read(out.getvalue(), delimiter)] == rows
