"""Rows in memory: pairs, triplets built from them, and the content hash."""

from __future__ import annotations

import hashlib
import random

from core.tasks import TaskData
from core.tasks.dataset import Split, Triplet
from tests.cases import each

SINGLE = Split(("a", "naïve 猫", 'one "two"'), (0, 1, 0))
PAIRS = Split(("a", "b", "c"), (0, 1, 0), ("x", "y", "z"))


def task(train: Split, classes: tuple[str, ...] = ("no", "yes")) -> TaskData:
    return TaskData("made", classes, train, train.take([0]), train.take([1]))


class TestSplit:
    def test_the_encoder_reads_texts_or_pairs(self) -> None:
        assert SINGLE.inputs == SINGLE.texts
        assert PAIRS.inputs == (("a", "x"), ("b", "y"), ("c", "z"))

    def test_each_row_is_shown_on_one_line(self) -> None:
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

    def test_the_labels_may_be_written_in_capitals(self) -> None:
        assert len(nli(("p", "a", 1), ("p", "b", 0), classes=("Contradiction", "ENTAILMENT"))) == 1

    @each("classes", [("no", "yes", "maybe"), ("entailment", "not_entailment", "neutral")])
    def test_other_labels_give_none(self, classes: tuple[str, ...]) -> None:
        assert nli(("p", "a", 1), ("p", "b", 0), classes=classes) == ()

    def test_single_texts_give_none(self) -> None:
        assert task(SINGLE, ("contradiction", "entailment")).triplets == ()

    def test_validation_and_test_rows_give_none(self) -> None:
        held_out = Split(("p", "p"), (YES, NO), ("a", "b"))
        data = TaskData("nli", NLI, Split(("q",), (MAYBE,), ("c",)), held_out, held_out)
        assert data.triplets == ()
