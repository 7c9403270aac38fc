"""Delimiters, quotes and headers of files as people write them."""

from __future__ import annotations

import csv
import io
import random
import time
import warnings

import pytest

from core.errors import TaskError
from core.tasks.files.delimited import DELIMITERS, Dialect, find_dialect, has_header, records, regularity

WORDS = ["good", "bad, really", "well; no", "a|b", "it's", '5" screen', "", "1,000", "café", "猫", "=)", "so-so"]


def read(text: str, delimiter: str = ",", *, quoted: bool = True) -> list[tuple[int, tuple[str, ...]]]:
    return list(records(io.StringIO(text, newline=""), Dialect(delimiter, quoted)))


def found(text: str, **options: object) -> Dialect:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return find_dialect(text, whole=True, **options)


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

    @pytest.mark.parametrize("end", ["", '"x,y\n'])
    def test_an_open_quote_that_takes_many_rows_along_is_refused(self, end: str) -> None:
        with pytest.raises(TaskError, match=r"^line 2 has a quotation mark that is not closed in its row"):
            read('a,b\n"c,d\n' + "e,f\n" * 50 + end)

    def test_quotes_can_be_plain_characters(self) -> None:
        assert read('"a\tb"\n"\tc\n', "\t", quoted=False) == [(1, ('"a', 'b"')), (2, ('"', "c"))]

    def test_a_field_beyond_the_limit_of_the_csv_module_is_read(self) -> None:
        assert read("x" * 200_000 + ",y") == [(1, ("x" * 200_000, "y"))]

    @pytest.mark.parametrize("delimiter", DELIMITERS)
    def test_what_the_csv_module_writes_is_read(self, delimiter: str) -> None:
        rng = random.Random(delimiter)
        for _ in range(50):
            rows = [tuple(rng.choice([*WORDS, "a\nb", 'q"q']) for _ in range(3)) for _ in range(20)]
            out = io.StringIO()
            csv.writer(out, delimiter=delimiter).writerows(rows)
            assert [fields for _, fields in read(out.getvalue(), delimiter)] == rows


class TestDialect:
    @pytest.mark.parametrize("delimiter", DELIMITERS)
    @pytest.mark.parametrize("header", [True, False])
    def test_what_the_csv_module_writes_is_recognised(self, delimiter: str, header: bool) -> None:
        right = 0
        for seed in range(40):
            rng = random.Random(seed)
            rows = [
                (" ".join(rng.choices(WORDS, k=rng.randint(2, 9))), rng.choice(["good", "bad"]))
                for _ in range(rng.choice([5, 50, 300]))
            ]
            out = io.StringIO()
            csv.writer(out, delimiter=delimiter).writerows([("text", "label"), *rows] if header else rows)
            right += found(out.getvalue()) == Dialect(delimiter, quoted=True)
        assert right == 40

    @pytest.mark.parametrize("seed", range(10))
    def test_tabs_with_stray_quotes_are_read_without_quoting(self, seed: int) -> None:
        rng = random.Random(seed)
        texts = [" ".join(rng.choices(["it", 'said "so', '"well"', "and", 'then"', '"no,'], k=8)) for _ in range(100)]
        text = "sentence\tlabel\n" + "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(texts))
        for tsv in (True, False):
            dialect = found(text, prefers_tabs=tsv)
            assert dialect == Dialect("\t", quoted=False)
        assert [fields[0] for _, fields in read(text, "\t", quoted=False)][1:] == texts

    def test_quotes_that_mean_something_are_kept_with_tabs(self) -> None:
        text = "".join(f'"a ""film""\twith tabs {i}"\t{i % 2}\n' for i in range(50))
        assert found(text, prefers_tabs=True) == Dialect("\t", quoted=True)

    @pytest.mark.parametrize("delimiter", [",", "\t"])
    def test_one_bad_row_does_not_change_what_quotes_mean_in_the_others(self, delimiter: str) -> None:
        rows = [f'"a film {i}"{delimiter}"{i % 2}"\n' for i in range(50)]
        rows[20] = f'"a "film" of 20"{delimiter}"1"\n'
        assert found("".join(rows)) == Dialect(delimiter, quoted=True)

    def test_commas_in_texts_do_not_hide_tabs(self) -> None:
        text = "".join(f"well, this{', and this' * (i % 4)}\t{i % 2}\n" for i in range(50))
        assert found(text).delimiter == "\t"

    def test_a_settled_delimiter_stays(self) -> None:
        assert found("a,b\nc,d\n", delimiter=";") == Dialect(";", quoted=True)

    def test_without_any_delimiter_it_is_a_comma_or_a_tab(self) -> None:
        assert found("one\ntwo\n") == Dialect(",", quoted=True)
        assert found("one\ntwo\n", prefers_tabs=True) == Dialect("\t", quoted=True)
        assert found("") == Dialect(",", quoted=True)

    def test_a_few_ragged_rows_do_no_harm(self) -> None:
        text = "text,label\n" + "a film,good\n" * 40 + "a, b,bad\n" + "one\n" + "a film,bad\n" * 40
        assert found(text) == Dialect(",", quoted=True)

    @pytest.mark.parametrize(
        "text",
        [
            "a" * 65_536,
            "1" * 65_536,
            '"' * 65_536,
            '",' * 32_000,
            "a," * 32_000,
            "1.1," * 16_000,
            "猫" * 65_536,
            " " * 65_536,
            "a.b@" * 16_000,
            "http://" * 9_000,
            "-" * 65_536,
            "1/1/" * 16_000,
            "(" * 65_536,
            "1\n" * 32_000,
            "%5" * 30_000,
        ],
        ids=lambda text: text[:4].strip(),
    )
    def test_nothing_takes_long(self, text: str) -> None:
        start = time.process_time()
        found(text)
        assert time.process_time() - start < 3

    def test_the_cut_last_row_of_a_sample_does_not_count(self) -> None:
        text = "a,b\nc,d\n" * 10 + '"e,'
        assert regularity(text, Dialect(",", quoted=True), whole=False) == 1.0
        assert regularity(text, Dialect(",", quoted=True), whole=True) < 1.0


class TestHeader:
    @pytest.mark.parametrize(
        "rows",
        [
            [("text", "label"), ("a film", "good")],
            [("text", "label")],
            [("", "review", "stars"), ("0", "a film", "5"), ("1", "no film", "4")],
            [("v1", "v2", "", ""), ("ham", "see you later then, at the film", "", ""), ("spam", "buy " * 20, "", "")],
            [("foo", "bar"), ("a film that is long enough", "1"), ("another", "0")],
            [("문장", "라벨"), ("영화", "1")],
            [("id", "document", "label"), ("1", "a film", "0")],
        ],
    )
    def test_names_are_a_header(self, rows: list[tuple[str, ...]]) -> None:
        assert has_header(rows)

    @pytest.mark.parametrize(
        "rows",
        [
            [("3", "Wall St. Bears", "Short-sellers are back"), ("4", "Carlyle", "A firm")],
            [("A film that I liked a lot.", "1"), ("Not so good.", "0")],
            [("ham", "Go until jurong point"), ("spam", "Free entry"), ("ham", "Ok")],
            [("good film", "positive"), ("bad film", "negative"), ("fine film", "positive")],
            [("1.5", "2"), ("1", "2")],
            [("only one row", "x")],
            [("a film", "good"), ("no film", "bad")],
            [()],
            [],
        ],
    )
    def test_values_are_none(self, rows: list[tuple[str, ...]]) -> None:
        assert not has_header(rows)
