"""Several files as one task: what repeats over them, and which rows are left."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest

from core.config import ReadingConfig
from core.errors import ConfigError, TaskError
from core.tasks.files.combined import combine_readings
from core.tasks.files.reading import Reading, read_rows
from core.tasks.files.tables import open_table
from core.tasks.rows import Rows

TRAIN = "text,label\na,x\nb,y\n,x\nb,y\nc,x\n=SUM(1),y\n"
TEST = "text,label\nB ,y\nnew,x\nc,y\nnew,x\nnew\n"


def read(raw: str, name: str, **options: Any) -> Reading:
    given = ReadingConfig(**options)
    return read_rows(open_table(io.BytesIO(raw.encode()), name, given), given)


def pairs(rows: Rows) -> list[tuple[str, str]]:
    return list(zip(rows.texts, rows.labels, strict=True))


def test_a_single_file_is_as_its_reading() -> None:
    reading = read(TRAIN, "train.csv")
    together = combine_readings([reading])
    assert together.readings == (reading,)
    assert together.problems == reading.problems
    assert together.counts == reading.counts == {"empty_text": 1, "duplicate": 1, "formula": 1}
    assert together.optional == (reading.optional,)
    assert together.dropped == reading.dropped == 1
    for kinds in ([], ["duplicate"], ["duplicate", "formula", "empty_text"]):
        assert together.dropping(kinds) == [reading.dropping(kinds)]


class TestTwoFiles:
    def test_what_is_wrong_is_told_file_by_file(self) -> None:
        together = combine_readings([read(TRAIN, "train.csv"), read(TEST, "test.csv")])
        assert together.counts == {"fields": 1, "empty_text": 1, "duplicate": 3, "two_labels": 2, "formula": 1}
        assert together.dropped == 2
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
        said = {(p.file, p.line): str(p.message) for p in together.problems}
        assert said["train.csv", 5] == "Line 5 repeats line 3: 'b'."
        assert said["test.csv", 2] == "'test.csv', line 2, repeats line 3 of 'train.csv': 'B'."
        assert said["test.csv", 5] == "Line 5 repeats line 3: 'new'."
        assert said["test.csv", 6] == "Line 6 has 1 field where there are 2 columns."

    def test_the_copy_in_the_test_file_goes(self) -> None:
        together = combine_readings([read(TRAIN, "train.csv"), read(TEST, "test.csv")])
        train, test = together.dropping(["duplicate"])
        assert pairs(train) == [("a", "x"), ("b", "y"), ("c", "x"), ("=SUM(1)", "y")]
        assert pairs(test) == [("new", "x"), ("c", "y")]

    def test_both_rows_of_a_text_with_two_labels_go(self) -> None:
        together = combine_readings([read(TRAIN, "train.csv"), read(TEST, "test.csv")])
        train, test = together.dropping(["two_labels", "duplicate", "fields"])
        assert pairs(train) == [("a", "x"), ("b", "y"), ("=SUM(1)", "y")]
        assert pairs(test) == [("new", "x")]
        assert [len(rows) for rows in together.dropping([])] == [5, 4]

    def test_the_readings_stay_as_they_are(self) -> None:
        test = read(TEST, "test.csv")
        combine_readings([read(TRAIN, "train.csv"), test])
        assert test.counts == {"fields": 1, "duplicate": 1}
        assert len(test.rows) == 4

    def test_a_file_of_which_nothing_is_left_is_named(self) -> None:
        together = combine_readings(
            [read("text,label\na,x\nb,y\n", "train.csv"), read("text,label\na,x\n", "test.csv")]
        )
        with pytest.raises(TaskError, match=r"'test.csv' has no row left when all of these are dropped"):
            together.dropping(["duplicate"])
        with pytest.raises(ConfigError, match="drop = 'typo' cannot be used: choose from fields, "):
            together.dropping(["typo"])

    def test_pairs_and_scores_are_compared_as_such(self) -> None:
        train = read("text_a,text_b,score\na,b,1\nc,d,2\n", "train.csv", kind="similarity")
        test = read("text_a,text_b,score\nA,b,1.0\nc,d,3\nb,a,1\n", "test.csv", kind="similarity")
        together = combine_readings([train, test])
        assert together.counts == {"duplicate": 1, "two_labels": 2}
        assert together.optional == ({"two_labels": (1,)}, {"duplicate": (0,), "two_labels": (1,)})

    def test_every_file_and_every_kind_has_room(self) -> None:
        train = read("text,label\n" + "same,x\n" * 10_101 + ",x\n" * 30, "train.csv")
        test = read("text,label\nsame,x\nother,y\n,x\n", "test.csv")
        together = combine_readings([train, test])
        assert together.counts == {"empty_text": 31, "duplicate": 10_101}
        assert Counter((p.file, p.kind) for p in together.problems) == {
            ("train.csv", "duplicate"): 9_970,
            ("train.csv", "empty_text"): 30,
            ("test.csv", "duplicate"): 1,
            ("test.csv", "empty_text"): 1,
        }
