"""Loading a file into three splits that do not depend on the seed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.config import TaskConfig
from core.errors import ConfigError, PlaygroundError, TaskError
from core.messages import in_language
from core.store import TaskLibrary
from core.tasks import TaskData, load_task
from core.tasks.load import join_rows, split_rows
from core.tasks.rows import Rows
from tests.cases import each
from tests.conftest import write_csv


def numbered(**counts: int) -> list[tuple[str, str]]:
    """Return the given number of distinct texts per label, alternating between labels."""
    return [
        (f"{label} number {i}", label) for i in range(max(counts.values())) for label in counts if i < counts[label]
    ]


def load(rows: list[tuple[str, str]], seed: int = 0, **task: Any) -> TaskData:
    return split_rows(Rows(*zip(*rows, strict=True)), "rows.csv", TaskConfig(**task), seed)


def test_a_held_out_test_is_made_when_none_is_given() -> None:
    data = load(numbered(cat=60, dog=40))
    assert (len(data.test), len(data.validation), len(data.train)) == (20, 24, 56)


def test_a_given_test_file_is_used_whole_and_in_order(tmp_path: Path) -> None:
    train, test = write_csv(tmp_path / "rows.csv", numbered(cat=60, dog=40)), tmp_path / "held_out.csv"
    config = TaskConfig(id="file", path=str(train), test_path=str(test))
    write_csv(test, [("new", "emu")])
    with pytest.raises(TaskError, match=r"'held_out\.csv' has the label 'emu'.*'cat, dog'"):
        load_task(config, 0)
    write_csv(test, [("new dog", "dog"), ("new cat", "cat"), ("another dog", "dog")])
    data = load_task(config, 0)
    assert data.test.texts == ("new dog", "new cat", "another dog")
    assert data.test.labels == (1, 0, 1)
    assert len(data.train) + len(data.validation) == 100


def test_no_row_is_in_two_splits_and_none_is_lost() -> None:
    rows = numbered(cat=60, dog=41, emu=5)
    data = load(rows)
    splits = [data.train, data.validation, data.test]
    found = [(text, data.classes[label]) for s in splits for text, label in zip(s.texts, s.labels, strict=True)]
    assert sorted(found) == sorted(rows)


def test_the_splits_keep_the_class_shares_and_hold_every_class() -> None:
    data = load(numbered(cat=100, dog=300))
    for split in (data.train, data.validation, data.test):
        counts = Counter(split.labels)
        assert [counts[0] / len(split), counts[1] / len(split)] == pytest.approx([0.25, 0.75], abs=0.02)
    data = load(numbered(cat=200, dog=4, emu=3))
    for split in (data.train, data.validation, data.test):
        assert set(split.labels) == {0, 1, 2}


def test_the_splits_do_not_depend_on_the_seed() -> None:
    rows = numbered(cat=60, dog=40)
    one, other = load(rows, seed=0, train_size=10), load(rows, seed=1, train_size=10)
    assert one.validation == other.validation
    assert one.test == other.test
    assert one.train != other.train


def test_few_shot_samples_are_nested() -> None:
    rows = numbered(cat=60, dog=40)
    samples = [set(load(rows, train_size=size).train.texts) for size in (2, 10, 30)]
    assert samples[0] < samples[1] < samples[2] < set(load(rows).train.texts)
    assert len(load(numbered(cat=20, dog=20), train_size=23).train) == 23  # the most that a refusal offers


def test_classes_are_sorted_and_numbers_by_value() -> None:
    assert load(numbered(**{"10": 5, "9": 5, "-1": 5})).classes == ("-1", "9", "10")
    assert load(numbered(b=5, a=5, **{"2": 5})).classes == ("2", "a", "b")


@each(
    ("rows", "more", "parts"),
    [
        (numbered(cat=10), {}, ["rows.csv", "only the label 'cat'"]),
        (numbered(cat=30, dog=1), {}, ["too few rows with the label 'dog' ('dog number 0') for a test split"]),
        (numbered(cat=30, dog=2), {}, ["too few rows with the label 'dog'"]),
        (numbered(cat=2, dog=2), {}, ["too few rows"]),
        (numbered(cat=20, dog=20, emu=20), {"train_size": 2}, ["train_size = 2", "give at least 3"]),
        (numbered(cat=20, dog=20), {"train_size": 24}, ["train_size = 24", "give at most 23"]),
        (numbered(cat=20, dog=20), {"validation_size": 39}, ["validation_size = 39", "32 rows"]),
    ],
)
def test_what_cannot_be_learned_is_refused(rows: list[tuple[str, str]], more: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(PlaygroundError) as caught:
        load(rows, **more)
    for part in parts:
        assert part in str(caught.value)


@each("path", [None, ""])
def test_a_file_task_needs_a_path(path: str | None) -> None:
    with pytest.raises(ConfigError, match="give the path of a CSV, TSV, JSONL or Parquet file"):
        load_task(TaskConfig(id="file", path=path), 0)


def test_a_class_that_validation_would_take_whole_keeps_a_row_to_train_on() -> None:
    data = load(numbered(cat=60, dog=3), validation_size=45)
    assert set(data.train.labels) == set(data.validation.labels) == {0, 1}


def test_the_majority_rate_is_the_validation_share_of_the_commonest_training_class() -> None:
    data = load(numbered(cat=30, dog=70))
    rate = data.majority_rate(data.validation)
    assert rate == data.validation.labels.count(1) / len(data.validation)
    assert rate == pytest.approx(0.7, abs=0.05)


class TestPairs:
    @staticmethod
    def file(path: Path, rows: int, header: str = "text,text_b,label") -> Path:
        lines = [f"premise {i},hypothesis {i},{'no' if i % 2 else 'yes'}" for i in range(rows)]
        if "text_b" not in header:
            lines = [f"premise {i},{'no' if i % 2 else 'yes'}" for i in range(rows)]
        path.write_text("\n".join([header, *lines]))
        return path

    def test_every_split_keeps_a_text_with_its_second(self, tmp_path: Path) -> None:
        data = load_task(TaskConfig(id="file", path=str(self.file(tmp_path / "pairs.csv", 60)), train_size=10), 0)
        for split in (data.train, data.validation, data.test):
            assert split.seconds is not None
            assert len(split.seconds) == len(split)
            for (first, second), label in zip(split.inputs, split.labels, strict=True):
                assert first.split()[1] == second.split()[1]
                assert data.classes[label] == ("no" if int(first.split()[1]) % 2 else "yes")
        assert len(data.train) == 10
        train, test = self.file(tmp_path / "pairs.csv", 60), self.file(tmp_path / "test.csv", 4)
        data = load_task(TaskConfig(id="file", path=str(train), test_path=str(test)), 0)
        assert data.test.inputs[1] == ("premise 1", "hypothesis 1")

    @pytest.mark.parametrize(
        ("headers", "sentence"),
        [
            (("text,text_b,label", "text,label"), "'test.csv' has no second text, but the training file has one"),
            (("text,label", "text,text_b,label"), "'test.csv' has a second text, but the training file has none"),
        ],
    )
    def test_pairs_and_single_texts_do_not_mix(self, tmp_path: Path, headers: tuple[str, str], sentence: str) -> None:
        train, test = (
            self.file(tmp_path / name, 60, header) for name, header in zip(("a.csv", "test.csv"), headers, strict=True)
        )
        with pytest.raises(TaskError, match=f"^{sentence}: give both the same columns.$"):
            load_task(TaskConfig(id="file", path=str(train), test_path=str(test)), 0)


class TestSplitsOfTheSource:
    """Rows with a given split."""

    @staticmethod
    def rows(train: int = 60, validation: int = 0, test: int = 0) -> Rows:
        splits = ("train",) * train + ("validation",) * validation + ("test",) * test
        texts = tuple(f"{split} {i}" for i, split in enumerate(splits))
        return Rows(texts, tuple("ab"[i % 2] for i in range(len(texts))), splits=splits)

    def test_they_are_followed_and_completed(self) -> None:
        data = split_rows(self.rows(60, 20, 10), "t")
        for name, split in (("train", data.train), ("validation", data.validation), ("test", data.test)):
            assert all(text.startswith(name) for text in split.texts)
        assert (len(data.train), len(data.validation), len(data.test)) == (60, 20, 10)
        # Missing ones are cut from the training rows.
        data = split_rows(self.rows(100, 0, 10), "t")
        assert (len(data.train), len(data.validation), len(data.test)) == (70, 30, 10)
        data = split_rows(self.rows(100, 10, 0), "t")
        assert (len(data.train), len(data.validation), len(data.test)) == (80, 10, 20)
        assert all(text.startswith("train") for text in data.test.texts)

    def test_validation_rows_that_are_not_wanted_are_never_trained_on(self) -> None:
        data = split_rows(self.rows(60, 20, 10), "t", TaskConfig(validation_size=4))
        assert (len(data.train), len(data.validation)) == (60, 4)
        assert sorted(data.validation.labels) == [0, 0, 1, 1]

    def test_without_training_rows_there_is_nothing_to_learn(self) -> None:
        with pytest.raises(TaskError, match="no row in the split train"):
            split_rows(self.rows(0, 20, 10), "t")

    def test_a_label_outside_of_the_training_rows_is_refused(self) -> None:
        rows = self.rows(60, 0, 10)
        with pytest.raises(TaskError, match=r"'t' has the label 'new' only outside the training rows.*a, b"):
            split_rows(Rows(rows.texts, (*rows.labels[:-1], "new"), splits=rows.splits), "t")

    def test_a_test_file_beside_a_test_split_is_refused(self) -> None:
        with pytest.raises(TaskError, match=r"'a\.csv' has its own test split: leave out the test file 'b.csv'"):
            join_rows([self.rows(60, 0, 10), Rows(("x",), ("a",))], ["a.csv", "b.csv"])


class TestRepeatedTexts:
    def test_the_hypotheses_of_a_premise_stay_in_one_split(self) -> None:
        labels = ("entailment", "neutral", "contradiction")
        rows = Rows(
            tuple(f"premise {i}" for i in range(80) for _ in labels),
            labels * 80,
            tuple(f"hypothesis {i} {label}" for i in range(80) for label in labels),
        )
        data = split_rows(rows, "nli")
        of_split = [set(split.texts) for split in (data.train, data.validation, data.test)]
        assert sum(map(len, of_split)) == len(set.union(*of_split)) == 80
        assert len(data.triplets) == len(of_split[0])
        few = split_rows(rows, "nli", TaskConfig(train_size=12)).train
        assert len(few) == 12
        assert len(set(few.texts)) <= 6  # mostly whole premises of three rows

    @each("again", ["text {}", "Text  {} ", "TEXT\n{}"])
    def test_a_text_that_stands_twice_is_not_learned_and_tested(self, again: str) -> None:
        texts = tuple((again if i % 2 else "text {}").format(i // 2) for i in range(200))
        data = split_rows(Rows(texts, tuple("ab"[i // 2 % 2] for i in range(200))), "twice")
        of_split = [{text.lower().split()[1] for text in s.texts} for s in (data.train, data.validation, data.test)]
        assert sum(map(len, of_split)) == 100
        assert data.notes == ()

    def test_a_text_that_fills_many_rows_does_not_keep_the_others_from_staying_together(self) -> None:
        texts = ("the same",) * 40 + tuple(f"text {i // 2}" for i in range(360))
        data = split_rows(Rows(texts, tuple("ab"[i // 2 % 2] for i in range(400))), "often")
        of_split = [set(s.texts) - {"the same"} for s in (data.train, data.validation, data.test)]
        assert sum(map(len, of_split)) == 180
        (note,) = data.notes
        scored = sum(s.texts.count("the same") for s in (data.validation, data.test))
        assert str(note).startswith(f"{scored} validation or test rows repeat a training text")

    @pytest.mark.usefixtures("foreign")
    def test_notes_are_in_the_language_in_which_they_are_asked_for(self) -> None:
        """The rows are cached for two visitors with different languages."""
        texts = tuple(f"text {i}" for i in range(100))
        data = split_rows(Rows(texts + texts, ("a", "b") * 100, splits=("train",) * 100 + ("test",) * 100), "leak")
        words = "70 validation or test rows repeat a training text, which makes scores too high."
        with in_language("en"):
            assert tuple(map(str, data.notes)) == (words,)
        assert tuple(map(str, data.notes)) == (f"«{words}»",)


class TestNoise:
    ROWS = numbered(cat=60, dog=60, emu=60)

    def test_clean_rows_are_kept_beside_noisy_ones(self) -> None:
        plain = load(self.ROWS, train_size=30)
        noisy = load(self.ROWS, train_size=30, label_noise=0.3, text_noise=0.5)
        assert noisy.clean == plain.train
        assert noisy.validation == plain.validation
        assert noisy.test == plain.test
        wrong = sum(a != b for a, b in zip(noisy.train.labels, plain.train.labels, strict=True))
        assert 6 <= wrong <= 12  # a third of 10 of each class, to within one row
        assert noisy.train.texts != plain.train.texts
        assert noisy.content_hash != plain.content_hash
        assert load(self.ROWS, train_size=30, label_noise=0.3, text_noise=0.5).content_hash == noisy.content_hash

    def test_without_noise_nothing_is_kept_twice(self) -> None:
        assert load(self.ROWS, train_size=30, imbalance=3.0).clean is None

    def test_a_smaller_sample_has_the_noise_of_a_larger_one(self) -> None:
        def known(size: int | None) -> dict[str, tuple[str, int]]:
            data = load(self.ROWS, train_size=size, label_noise=0.4, text_noise=0.5, imbalance=2.0)
            assert data.clean is not None
            rows = zip(data.clean.texts, data.train.texts, data.train.labels, strict=True)
            return {before: (after, label) for before, after, label in rows}

        few, more, every = known(9), known(30), known(None)
        assert few.items() < more.items() < every.items()

    def test_imbalance_thins_the_later_classes_out(self) -> None:
        data = load(self.ROWS, imbalance=4.0)
        counts = [data.train.labels.count(label) for label in range(3)]
        plain = load(self.ROWS)
        full = [plain.train.labels.count(label) for label in range(3)]
        assert counts == [full[0], full[0] // 2, full[0] // 4]
        assert set(data.train.texts) < set(plain.train.texts)

    def test_changing_the_words_of_very_many_texts_is_refused(self) -> None:
        rows = Rows(tuple(f"text number {i}" for i in range(30_000)), ("a", "b") * 15_000)
        with pytest.raises(ConfigError, match=r"text_noise = 0.1.* train_size of at most 20,000"):
            split_rows(rows, "many", TaskConfig(text_noise=0.1))
        assert len(split_rows(rows, "many", TaskConfig(text_noise=0.1, train_size=50)).train) == 50


class TestLibrary:
    @pytest.fixture
    def library(self, tmp_path: Path) -> TaskLibrary:
        return TaskLibrary(tmp_path)

    def test_a_task_of_the_library_is_loaded_under_its_name(self, library: TaskLibrary) -> None:
        rows = Rows(*zip(*numbered(cat=30, dog=30), strict=True))
        task = library.add(rows, name="Pets", source="")
        data = load_task(TaskConfig(id=task.id), 0, library.named_rows)
        assert data == split_rows(rows, "Pets")
        library.rename(task.id, "Animals")
        assert load_task(TaskConfig(id=task.id), 0, library.named_rows).name == "Animals"

    def test_what_cannot_be_learned_is_said(self, library: TaskLibrary) -> None:
        scores = library.add(Rows(("a", "b"), ("1.5", "2"), ("c", "d"), kind="similarity"), name="sts", source="")
        with pytest.raises(TaskError, match="'own-0123456789abcdef' is not in this library"):
            load_task(TaskConfig(id="own-0123456789abcdef"), 0, library.named_rows)
        with pytest.raises(TaskError, match="no runs folder is open"):
            load_task(TaskConfig(id=scores.id), 0)
        with pytest.raises(ConfigError, match="test_path"):
            load_task(TaskConfig(id=scores.id, test_path="x.csv"), 0, library.named_rows)


class TestProblems:
    def test_rows_that_cannot_be_used_are_dropped_when_told_so(self, tmp_path: Path) -> None:
        good = numbered(cat=30, dog=30)
        path = write_csv(tmp_path / "rows.csv", [*good, ("", "cat"), ("a text", ""), good[0]])
        with pytest.raises(TaskError) as caught:
            load_task(TaskConfig(id="file", path=str(path)), 0)
        assert "Line 62" in str(caught.value)
        assert "1 more row has" in str(caught.value)
        assert "--drop empty_text --drop empty_label" in str(caught.value)
        kept = load_task(TaskConfig(id="file", path=str(path), drop=("empty_text", "empty_label")), 0)
        dropped = load_task(TaskConfig(id="file", path=str(path), drop=("empty_text", "empty_label", "duplicate")), 0)
        sizes = [sum(map(len, (data.train, data.validation, data.test))) for data in (kept, dropped)]
        assert sizes == [61, 60]
        assert tuple(map(str, kept.notes)) == ("rows.csv: CSV, UTF-8, comma; 61 of 63 rows.",)
        assert tuple(map(str, dropped.notes)) == ("rows.csv: CSV, UTF-8, comma; 61 of 63 rows, 60 of them used.",)

    def test_of_a_file_with_too_many_rows_a_sample_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write_csv(tmp_path / "rows.csv", numbered(cat=60, dog=60))
        assert load_task(TaskConfig(id="file", path=str(path)), 0).notes == ()
        monkeypatch.setenv("SCL_MAX_ROWS", "100")
        os.utime(path, (1, 1))  # a new date, so that the file is read again
        data = load_task(TaskConfig(id="file", path=str(path), text_noise=0.1), 0)
        assert tuple(map(str, data.notes)) == ("rows.csv: CSV, UTF-8, comma; a sample of 100 of 120 rows.",)
        assert sum(map(len, (data.train, data.validation, data.test))) == 100
