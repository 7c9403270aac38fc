"""Rows with their problems, against slow loops."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import ConfigError, TaskError
from core.tasks.files.problems import PROBLEMS
from core.tasks.files.reading import CombinedFiles, Reading, combine_readings, read_rows
from core.tasks.files.tables import open_table
from core.tasks.load import usable_rows
from core.tasks.rows import Rows
from tests.cases import each
from tests.core.tasks.files.test_tables import KINDS, check_sentence, written
from tests.hub_server import csv_file

HEADER = b"text,label\n"
TRAIN = "text,label\na,x\nb,y\n,x\nb,y\nc,x\n=SUM(1),y\n"
TEST = "text,label\nB ,y\nnew,x\nc,y\nnew,x\nnew\n"


def unusable(together: CombinedFiles) -> int:
    """Return the number of unusable rows of all files."""
    return sum(sum(reading.counts.values()) for reading in together.readings)


def read(raw: bytes | str, name: str = "rows.csv", **options: Any) -> Reading:
    given = ReadingConfig(**options)
    return read_rows(open_table(raw.encode() if isinstance(raw, str) else raw, name, given), given)


def combined(raw: bytes | str, name: str = "rows.csv", **options: Any) -> CombinedFiles:
    return combine_readings([read(raw, name, **options)])


def refusal(raw: bytes | str, name: str = "rows.csv", **options: Any) -> str:
    with pytest.raises((TaskError, ConfigError)) as caught:
        read(raw, name, **options)
    return check_sentence(str(caught.value))


def pairs(rows: Rows) -> list[tuple[str, str]]:
    return list(zip(rows.texts, rows.labels, strict=True))


def one_problem(raw: bytes | str, name: str = "rows.csv", **options: Any) -> tuple[str, int, str]:
    """Return kind, line and message of the only problem, and check that its row is dropped if it must be."""
    together = combined(raw, name, **options)
    (reading,) = together.readings
    (problem,) = together.problems
    assert together.counts == {problem.kind: 1}
    assert unusable(together) == int(PROBLEMS[problem.kind].must_drop)
    assert len(reading.rows) == reading.source.total - unusable(together)
    assert (problem.line in reading.lines) == (not PROBLEMS[problem.kind].must_drop)
    assert problem.file == name
    return problem.kind, problem.line, str(problem.message)


class TestRows:
    def test_rows_keep_their_lines_and_scores_their_digits(self) -> None:
        reading = read('id,text,label\n1, a film ,1\n2,"another\none", 0\n')
        assert reading.rows == Rows(("a film", "another\none"), ("1", "0"))
        assert (reading.lines, reading.problems, reading.counts) == ((2, 3), (), {})
        reading = read("text_a,text_b,score\na,b,4.00\nc,d,0.2\n")
        assert reading.rows == Rows(("a", "c"), ("4.00", "0.2"), ("b", "d"), None, "similarity")

    def test_the_mapping_is_full_and_reads_the_same_again(self) -> None:
        raw = "premise;hypothesis;gold_label;set\nüber a;b;x;Train\nc;für d;y;dev\n".encode("cp1252")
        reading = read(raw)
        columns = {"text": "premise", "text_b": "hypothesis", "label": "gold_label", "split": "set", "kind": "classes"}
        dialect = {"encoding": "cp1252", "delimiter": ";", "quote": '"', "escape": "", "header": True}
        assert reading.source.mapping == ReadingConfig(**columns, **dialect)
        assert reading.rows == Rows(("über a", "c"), ("x", "y"), ("b", "für d"), ("train", "validation"))
        assert read(raw, **reading.source.mapping.model_dump()) == reading

    def test_usual_names_of_splits_are_understood(self) -> None:
        names = ["train", "TRN", "validation", "Dev", "test", " Eval "]
        rows = "".join(f"text {i},x,{split}\n" for i, split in enumerate(names))
        expected = ("train", "train", "validation", "validation", "test", "test")
        assert read("text,label,split\n" + rows).rows.splits == expected

    @each("kind", KINDS)
    def test_the_formats_give_the_same_rows(self, kind: str) -> None:
        texts, splits = ("a film", 'no\tfilm, 猫 "x"', "=)"), ("train", "test", "train")
        reading = read(written(kind, {"text": texts, "label": (1, 0, 1), "split": splits}), f"rows.{kind}")
        assert reading.rows == Rows(texts, ("1", "0", "1"), None, splits)
        assert reading.lines == ((1, 2, 3) if kind in ("parquet", "jsonl") else (2, 3, 4))


class TestProblems:
    @each(
        ("raw", "expected"),
        [
            (HEADER + b"a,x\nb\nc,y\n", ("fields", 3, "Line 3 has 1 field, but there are 2 columns.")),
            (HEADER + b'a,x\n"b"c,x\n"d, d",y\n"e, e",y\n', ("fields", 3, "Line 3 has a misplaced quotation mark.")),
            (b"text_a,text_b,label\na,b,x\nc, ,y\n", ("empty_text", 3, "Line 3 has an empty 'text_b'.")),
            (
                HEADER + b"a,x\n" + b"b" * 20_001 + b",y\n",
                ("long_text", 3, f"Line 3 has a text of more than 20,000 characters: '{'b' * 59}…."),
            ),
            (
                HEADER + b"a,x\nb," + b"y" * 101 + b"\n",
                ("long_label", 3, f"Line 3 has a label of more than 100 characters: '{'y' * 59}…."),
            ),
            (
                b"text,label,split\na,x,train\nb,y,\nc,x,test\ne,x,dev\nf,y,dev\ng,x,dev\nh,x,dev\ni,x,dev\nj,y,dev\n",
                ("bad_split", 3, "Line 3 is in the split '', which is not train, validation or test."),
            ),
            (
                b"text_a,text_b,score\na,b,0.5\nc,d,1e999\n",
                ("bad_score", 3, "Line 3 has the score '1e999', which is not a number."),
            ),
            (
                HEADER + b'a,x\nb,y\n=HYPERLINK(""),x\n',
                ("formula", 4, "Line 4 has a cell that a spreadsheet would run as a formula: '=HYPERLINK(\"\")'."),
            ),
        ],
    )
    def test_each_is_told_with_its_line(self, raw: bytes, expected: tuple[str, int, str]) -> None:
        assert one_problem(raw) == expected

    def test_rows_of_other_formats_are_told_too(self) -> None:
        raw = b'{"text": "a", "label": 1}\n{"text": "b"\n{"text": "c"}\n{"text": "d", "label": 0}\n'
        reading = read(raw, "rows.jsonl")
        assert [str(problem.message) for problem in reading.problems] == [
            "Line 2 is not a JSON object.",
            "Line 3 has an empty 'label'.",
        ]
        raw = written("parquet", {"text": ["a", None, "c"], "label": [0, 1, 1]})
        assert str(read(raw, "rows.parquet").problems[0].message) == "Row 2 has an empty 'text'."

    @each("seed", range(20))
    def test_a_slow_loop_finds_the_same(self, seed: int) -> None:
        rng = random.Random(seed)
        texts = ["", " ", "a", "A ", "b  c", "B c", "d", "=SUM(1)", "x" * 20_001]
        rows = [[rng.choice(texts), rng.choice(["x", "y", "", "z" * 101])] for _ in range(120)]
        for row in rows:
            if rng.random() < 0.1:
                row.append("more")
        together = combined(csv_file(["text", "label"], *rows))
        (reading,) = together.readings
        counts: Counter[str] = Counter()
        kept: list[tuple[int, str, str]] = []
        for line, row in enumerate(rows, 2):
            text, label = row[0].strip(), row[1].strip()
            if len(row) == 3:
                counts["fields"] += 1
            elif not text:
                counts["empty_text"] += 1
            elif not label:
                counts["empty_label"] += 1
            elif len(text) > 20_000:
                counts["long_text"] += 1
            elif len(label) > 100:
                counts["long_label"] += 1
            else:
                kept.append((line, text, label))
        for place, (_, text, label) in enumerate(kept):
            same = [(i, y) for i, (_, t, y) in enumerate(kept) if t.lower().split() == text.lower().split()]
            counts["duplicate"] += any(i < place and y == label for i, y in same)
            counts["two_labels"] += any(y != label for _, y in same)
            counts["formula"] += text.startswith("=")
        assert together.counts == {kind: count for kind, count in counts.items() if count}
        assert reading.rows == Rows(tuple(text for _, text, _ in kept), tuple(label for _, _, label in kept))
        assert list(reading.lines) == [line for line, _, _ in kept]
        reported = [problem.line for problem in together.problems]
        assert reported == sorted(reported)
        assert Counter(problem.kind for problem in together.problems) == together.counts

    def test_many_problems_are_all_counted_and_the_first_of_each_kind_listed(self) -> None:
        together = combined(HEADER + b"same,x\n" * 8_000 + b",x\n" * 1_200)
        assert together.counts == {"empty_text": 1_200, "duplicate": 7_999}
        assert Counter(problem.kind for problem in together.problems) == {"duplicate": 1_000, "empty_text": 1_000}
        assert [problem.line for problem in together.problems] == [*range(3, 1_003), *range(8_002, 9_002)]

    def test_a_field_that_is_too_long_is_told_as_that(self) -> None:
        raw = HEADER + b"a,x\n" + b"b" * (2**20 + 1) + b",y\n" + b"c,y\n"
        reading = read(raw, encoding="utf-8")
        assert [(*problem[:2], str(problem.message)) for problem in reading.problems] == [
            ("fields", 3, "Line 3 has a field of more than 1,048,576 characters.")
        ]
        assert reading.rows.texts == ("a", "c")


class TestTwoFiles:
    def test_what_is_wrong_is_told_file_by_file(self) -> None:
        together = combine_readings([read(TRAIN, "train.csv"), read(TEST, "test.csv")])
        assert together.counts == {"fields": 1, "empty_text": 1, "duplicate": 3, "two_labels": 2, "formula": 1}
        assert unusable(together) == 2
        assert [(p.file, p.line, p.kind) for p in together.problems] == [
            ("train.csv", 4, "empty_text"),
            ("train.csv", 5, "duplicate"),
            ("train.csv", 6, "two_labels"),
            ("train.csv", 7, "formula"),
            ("test.csv", 2, "duplicate"),
            ("test.csv", 4, "two_labels"),
            ("test.csv", 5, "duplicate"),
            ("test.csv", 6, "fields"),
        ]
        assert str(together.problems[1].message) == "Line 5 repeats line 3: 'b'."
        assert str(together.problems[4].message) == "Line 2 repeats line 3 of 'train.csv': 'B'."

    @each(
        ("kinds", "train", "test"),
        [
            (["empty_text", "fields"], "abbc=", "Bncn"),
            (["duplicate"], "abc=", "nc"),
            (["two_labels", "duplicate"], "ab=", "n"),
            (["formula"], "abbc", "Bncn"),
        ],
    )
    def test_rows_with_these_problems_are_dropped(self, kinds: list[str], train: str, test: str) -> None:
        together = combine_readings([read(TRAIN, "train.csv"), read(TEST, "test.csv")])
        assert ["".join(text[0] for text in rows.texts) for rows in together.dropping(kinds)] == [train, test]

    def test_a_file_of_which_nothing_is_left_is_named(self) -> None:
        together = combine_readings([read(HEADER + b"a,x\nb,y\n", "train.csv"), read(HEADER + b"a,x\n", "test.csv")])
        with pytest.raises(TaskError, match=r"'test.csv' has no rows left after dropping these"):
            together.dropping(["duplicate"])
        with pytest.raises(ConfigError, match="drop = 'typo' cannot be used: choose from fields, "):
            usable_rows(together, ["typo"])

    def test_pairs_and_scores_are_compared_as_such(self) -> None:
        train = read("text_a,text_b,score\na,b,1\nc,d,2\n", "train.csv", kind="similarity")
        test = read("text_a,text_b,score\nA,b,1.0\nc,d,3\nb,a,1\n", "test.csv", kind="similarity")
        together = combine_readings([train, test])
        assert together.counts == {"duplicate": 1, "two_labels": 2}
        assert together.optional == ({"two_labels": [1]}, {"duplicate": [0], "two_labels": [1]})


class TestLimits:
    def made(self, rows: int) -> str:
        return "text,label\n" + "".join(f"text {i},{i % 3}\n" for i in range(rows))

    def test_excess_rows_are_refused_with_scl_excess_rows_refuse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_ROWS", "50")
        monkeypatch.setenv("SCL_EXCESS_ROWS", "refuse")
        assert len(read(self.made(50)).rows) == 50
        assert refusal(self.made(51)) == "'rows.csv' has more than 50 rows: shorten the file, or raise SCL_MAX_ROWS."

    def test_a_sample_keeps_its_order_and_is_the_same_each_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_ROWS", "50")
        reading = read(self.made(1000) + "bad\n")
        assert reading.source.sentence == "rows.csv: CSV, UTF-8, comma; a sample of 50 of 1,001 rows"
        assert (len(reading.rows), reading.counts) == (50, {"fields": 1})
        assert list(reading.lines) == sorted(set(reading.lines))
        assert reading.rows.texts == tuple(f"text {line - 2}" for line in reading.lines)
        assert read(self.made(1000) + "bad\n") == reading
        assert min(reading.lines) < 200
        assert max(reading.lines) > 800

    def test_too_many_classes_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = "text,label\n" + "".join(f"text {i},{i}\n" for i in range(101))
        assert "has 101 different labels in the column 'label', but at most 100 are supported" in refusal(raw)
        monkeypatch.setenv("SCL_MAX_CLASSES", "101")
        assert len(read(raw).rows) == 101


def test_every_row_is_sampled_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCL_MAX_ROWS", "10")
    times, size, rows = 1_000, 10, 100
    kept: Counter[int] = Counter()
    table = open_table(b"text,label\n" + b"a,x\n" * rows, "rows.csv")
    for seed in range(times):
        monkeypatch.setattr("core.tasks.files.reading.SAMPLE_SEED", seed)
        kept.update(read_rows(table).lines)
    mean = times * size / rows
    deviation = (mean * (1 - size / rows)) ** 0.5
    assert max(abs(kept[line] - mean) for line in range(2, rows + 2)) < 4.5 * deviation


class TestRefusals:
    @each(
        ("raw", "part"),
        [
            (HEADER, "has columns but no rows"),
            (HEADER + b",x\n,y\nb,\n", "no usable row: of 3, 2 are rows without a text (line 2 has an empty 'text')."),
            (b"id,stars\n1,5\n2,4\n", "'rows.csv': No text column was found (columns: 'id, stars')"),
            (HEADER + b'"so, fine",x\n' * 200 + b'"never closed,x\n' + b"a,x\n" * 100, "line 202 has a quotation mark"),
        ],
    )
    def test_what_cannot_be_used_is_refused_in_one_sentence(self, raw: bytes, part: str) -> None:
        assert part in refusal(raw)

    def test_a_test_file_without_the_split_column_is_named(self) -> None:
        train = read("text,label,split\na,x,train\nb,y,validation\n", "train.csv")
        with pytest.raises(ConfigError, match=r"'test.csv': split = 'split' cannot be used: the file has"):
            read(HEADER + b"a,x\n", "test.csv", **train.source.mapping.model_dump())
