"""Dialects of files as people write them: delimiters, quotes, escapes, and spaces in front of quotes."""

from __future__ import annotations

import csv
import io
import random
import time
import warnings
from typing import Any

import pytest

from core.config import ReadingConfig
from core.tasks.files.delimited import Dialect, records, regularity
from core.tasks.files.dialects import DELIMITERS, find_dialect
from tests.cases import each

WORDS = ["good", "bad, really", "well; no", "a|b", "it's", '5" screen', "", "1,000", "café", "猫", "=)", "so-so"]


def read(text: str, *dialect: str) -> list[tuple[int, tuple[str, ...]]]:
    return list(records(io.StringIO(text, newline=""), Dialect(*dialect)))


def found(text: str, **options: Any) -> Dialect:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return find_dialect(text, whole=True, **options)


class TestDialect:
    @pytest.mark.slow
    @each("delimiter", DELIMITERS)
    @each("header", [True, False])
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
            right += found(out.getvalue()) == Dialect(delimiter)
        assert right == 40

    @each("seed", range(10))
    def test_tabs_with_stray_quotes_are_read_without_quoting(self, seed: int) -> None:
        rng = random.Random(seed)
        texts = [" ".join(rng.choices(["it", 'said "so', '"well"', "and", 'then"', '"no,'], k=8)) for _ in range(100)]
        text = "sentence\tlabel\n" + "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(texts))
        for tsv in (True, False):
            dialect = found(text, prefers_tabs=tsv)
            assert dialect == Dialect("\t", "")
        assert [fields[0] for _, fields in read(text, "\t", "")][1:] == texts

    def test_quotes_that_mean_something_are_kept_with_tabs(self) -> None:
        text = "".join(f'"a ""film""\twith tabs {i}"\t{i % 2}\n' for i in range(50))
        assert found(text, prefers_tabs=True) == Dialect("\t")

    @each("delimiter", [",", "\t"])
    def test_one_bad_row_does_not_change_what_quotes_mean_in_the_others(self, delimiter: str) -> None:
        rows = [f'"a film {i}"{delimiter}"{i % 2}"\n' for i in range(50)]
        rows[20] = f'"a "film" of 20"{delimiter}"1"\n'
        assert found("".join(rows)) == Dialect(delimiter)

    def test_commas_in_texts_do_not_hide_tabs(self) -> None:
        text = "".join(f"well, this{', and this' * (i % 4)}\t{i % 2}\n" for i in range(50))
        assert found(text).delimiter == "\t"

    def test_a_settled_delimiter_stays(self) -> None:
        assert found("a,b\nc,d\n", given=ReadingConfig(delimiter=";")) == Dialect(";")

    def test_without_any_delimiter_it_is_a_comma_or_a_tab(self) -> None:
        assert found("one\ntwo\n") == Dialect(",")
        assert found("one\ntwo\n", prefers_tabs=True) == Dialect("\t")
        assert found("") == Dialect(",")

    def test_a_few_ragged_rows_do_no_harm(self) -> None:
        text = "text,label\n" + "a film,good\n" * 40 + "a, b,bad\n" + "one\n" + "a film,bad\n" * 40
        assert found(text) == Dialect(",")

    @each(
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
    )
    def test_nothing_takes_long(self, text: str) -> None:
        start = time.process_time()
        found(text)
        assert time.process_time() - start < 3

    def test_the_cut_last_row_of_a_sample_does_not_count(self) -> None:
        text = "a,b\nc,d\n" * 10 + '"e,'
        assert regularity(text, Dialect(","), whole=False) == 1.0
        assert regularity(text, Dialect(","), whole=True) < 1.0
