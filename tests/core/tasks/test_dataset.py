"""Rows of a task: pairs, triplets built from them, the content hash, and the file of a run."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from core.errors import TaskError
from core.tasks import TaskData
from core.tasks.dataset import Split, Triplet, read_data, write_data
from core.tasks.rows import Rows, write_rows
from tests.cases import each

SINGLE = Split(("a", "naïve 猫", 'one "two"'), (0, 1, 0))
PAIRS = Split(("a", "b", "c"), (0, 1, 0), ("x", "y", "z"))


def task(train: Split, classes: tuple[str, ...] = ("no", "yes")) -> TaskData:
    return TaskData("made", classes, train, train.take([0]), train.take([1]))


class TestSplit:
    def test_the_encoder_reads_texts_or_pairs_and_each_row_is_shown_on_one_line(self) -> None:
        assert SINGLE.inputs == SINGLE.texts
        assert PAIRS.inputs == (("a", "x"), ("b", "y"), ("c", "z"))
        assert SINGLE.display_texts == SINGLE.texts
        assert PAIRS.display_texts == ("a ↔ x", "b ↔ y", "c ↔ z")

    def test_some_rows_keep_their_seconds_and_labels(self) -> None:
        assert PAIRS.take([2, 0]) == Split(("c", "a"), (0, 0), ("z", "x"))
        assert SINGLE.take([1]) == Split(("naïve 猫",), (1,))
        assert len(PAIRS.take([])) == 0


class TestContentHash:
    def test_single_texts_keep_their_hash_from_before_pairs(self) -> None:
        data = TaskData("t", ("n", "p"), Split(("a", "b"), (0, 1)), Split(("c",), (0,)), Split(("d",), (1,)))
        assert (
            data.content_hash == hashlib.sha256(b'[["n","p"],[[["a","b"],[0,1]],[["c"],[0]],[["d"],[1]]]]').hexdigest()
        )

    def test_it_changes_with_a_second_text(self) -> None:
        other = Split(PAIRS.texts, PAIRS.labels, ("x", "y", "changed"))
        hashes = {task(split).content_hash for split in (PAIRS, other, Split(PAIRS.texts, PAIRS.labels))}
        assert len(hashes) == 3


class TestFile:
    @each("train", [SINGLE, PAIRS])
    def test_every_row_comes_back_in_its_place(self, tmp_path: Path, train: Split) -> None:
        # The order of classes belongs to the run and is not alphabetical.
        data = task(train, ("b", "a", "never seen, and 「more」"))
        write_data(tmp_path / "rows" / "kept.parquet", data)
        assert read_data(tmp_path / "rows" / "kept.parquet", data.content_hash) == data

    def test_other_rows_and_other_files_are_refused(self, tmp_path: Path) -> None:
        write_data(tmp_path / "kept.parquet", task(SINGLE))
        with pytest.raises(TaskError, match="does not hold the rows of this run"):
            read_data(tmp_path / "kept.parquet", task(PAIRS).content_hash)
        write_rows(tmp_path / "kept.parquet", Rows(("x",), ("a",)), {})
        with pytest.raises(TaskError, match="has no rows of a run"):
            read_data(tmp_path / "kept.parquet", task(SINGLE).content_hash)


NLI = ("contradiction", "entailment", "neutral")
NO, YES, MAYBE = range(3)


def nli(*rows: tuple[str, str, int], classes: tuple[str, ...] = NLI) -> tuple[Triplet, ...]:
    texts, seconds, labels = zip(*rows, strict=True)
    return TaskData("nli", classes, Split(texts, labels, seconds), PAIRS, PAIRS).triplets


class TestTriplets:
    def test_against_a_slow_count_over_random_rows(self) -> None:
        rng = random.Random(0)
        rows = [(f"p{rng.randrange(6)}", f"s{i}", rng.randrange(3)) for i in range(60)]
        found = nli(*rows)
        for premise in {row[0] for row in rows}:
            of = [row for row in rows if row[0] == premise]
            expected = min(sum(row[2] == label for row in of) for label in (YES, NO))
            assert sum(t.premise == premise for t in found) == expected
        for triplet in found:
            assert (triplet.premise, triplet.entailment, YES) in rows
            assert (triplet.premise, triplet.contradiction, NO) in rows
        assert len({t.entailment for t in found}) == len({t.contradiction for t in found}) == len(found)

    def test_labels_may_be_written_in_capitals_and_other_labels_give_none(self) -> None:
        rows = ("p", "a", 1), ("p", "b", 0)
        assert len(nli(*rows, classes=("Contradiction", "ENTAILMENT"))) == 1
        for classes in (("no", "yes", "maybe"), ("entailment", "not_entailment", "neutral")):
            assert nli(*rows, classes=classes) == ()

    def test_single_texts_and_rows_of_other_splits_give_none(self) -> None:
        assert task(SINGLE, ("contradiction", "entailment")).triplets == ()
        held_out = Split(("p", "p"), (YES, NO), ("a", "b"))
        assert TaskData("nli", NLI, Split(("q",), (MAYBE,), ("c",)), held_out, held_out).triplets == ()
