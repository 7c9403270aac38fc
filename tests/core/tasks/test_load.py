"""From a file to three splits that do not depend on the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.config import TaskConfig
from core.errors import ConfigError, PlaygroundError, TaskError
from core.tasks import TaskData, load_task
from tests.conftest import write_csv

Load = Callable[..., TaskData]


def numbered(**counts: int) -> list[tuple[str, str]]:
    """That many different texts of each label, in turn."""
    return [
        (f"{label} number {i}", label) for i in range(max(counts.values())) for label in counts if i < counts[label]
    ]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Writes rows to files and loads them."""

    def loaded(
        rows: list[tuple[str, str]], test: list[tuple[str, str]] | None = None, seed: int = 0, **task: Any
    ) -> TaskData:
        path = write_csv(tmp_path / "rows.csv", rows)
        test_path = None if test is None else str(write_csv(tmp_path / "held_out.csv", test))
        return load_task(TaskConfig(id="csv", path=str(path), test_path=test_path, **task), seed)

    return loaded


def shares(labels: tuple[int, ...]) -> list[float]:
    return [count / len(labels) for _, count in sorted(Counter(labels).items())]


def test_a_held_out_test_is_made_when_none_is_given(load: Load) -> None:
    data = load(numbered(cat=60, dog=40))
    assert (len(data.test), len(data.validation), len(data.train)) == (20, 24, 56)


def test_a_given_test_file_is_used_whole_and_in_order(load: Load) -> None:
    held_out = [("new dog", "dog"), ("new cat", "cat"), ("another dog", "dog")]
    data = load(numbered(cat=60, dog=40), held_out)
    assert data.test.texts == ("new dog", "new cat", "another dog")
    assert data.test.labels == (1, 0, 1)
    assert len(data.train) + len(data.validation) == 100


def test_no_row_is_in_two_splits_and_none_is_lost(load: Load) -> None:
    rows = numbered(cat=60, dog=41, emu=5)
    data = load(rows)
    splits = [data.train, data.validation, data.test]
    found = [(text, data.classes[label]) for s in splits for text, label in zip(s.texts, s.labels, strict=True)]
    assert sorted(found) == sorted(rows)


def test_the_splits_keep_the_class_shares(load: Load) -> None:
    data = load(numbered(cat=100, dog=300))
    for split in (data.train, data.validation, data.test):
        assert shares(split.labels) == pytest.approx([0.25, 0.75], abs=0.02)


def test_every_class_is_in_every_split(load: Load) -> None:
    data = load(numbered(cat=200, dog=4, emu=3))
    for split in (data.train, data.validation, data.test):
        assert set(split.labels) == {0, 1, 2}


def test_the_splits_do_not_depend_on_the_seed(load: Load) -> None:
    rows = numbered(cat=60, dog=40)
    one, other = load(rows, seed=0, train_size=10), load(rows, seed=1, train_size=10)
    assert one.validation == other.validation
    assert one.test == other.test
    assert one.train != other.train


def test_few_shot_samples_are_nested(load: Load) -> None:
    rows = numbered(cat=60, dog=40)
    samples = [set(load(rows, train_size=size).train.texts) for size in (2, 10, 30)]
    assert samples[0] < samples[1] < samples[2] < set(load(rows).train.texts)


@pytest.mark.parametrize("size", [4, 8, 20, 40])
def test_few_shot_samples_are_stratified(load: Load, size: int) -> None:
    sample = load(numbered(cat=100, dog=300), train_size=size).train
    assert len(sample) == size
    assert shares(sample.labels) == pytest.approx([0.25, 0.75], abs=1 / size)


def test_a_wanted_validation_size_is_met(load: Load) -> None:
    assert len(load(numbered(cat=60, dog=40), validation_size=7).validation) == 7


def test_classes_are_sorted_and_numbers_by_value(load: Load) -> None:
    assert load(numbered(**{"10": 5, "9": 5, "-1": 5})).classes == ("-1", "9", "10")
    assert load(numbered(b=5, a=5, **{"2": 5})).classes == ("2", "a", "b")


def test_a_label_is_an_index_into_the_classes(load: Load) -> None:
    data = load(numbered(cat=20, dog=20))
    for split in (data.train, data.validation, data.test):
        assert all(text.startswith(data.classes[y]) for text, y in zip(split.texts, split.labels, strict=True))


class TestContentHash:
    def test_it_changes_with_a_row(self, load: Load) -> None:
        rows = numbered(cat=20, dog=20)
        before = load(rows).content_hash
        assert load(rows).content_hash == before
        for place in (0, 17, -1):
            changed = list(rows)
            changed[place] = (rows[place][0] + "!", rows[place][1])
            assert load(changed).content_hash != before

    def test_it_changes_with_a_label_and_with_the_sample(self, load: Load) -> None:
        rows = numbered(cat=20, dog=20)
        before = load(rows).content_hash
        assert load([(rows[0][0], "dog"), *rows[1:]]).content_hash != before
        assert load(rows, train_size=10).content_hash != before

    def test_a_changed_file_is_refused(self, load: Load) -> None:
        rows = numbered(cat=20, dog=20)
        before = load(rows).content_hash
        assert load(rows, content_hash=before).content_hash == before
        with pytest.raises(TaskError, match=r"rows\.csv has changed since this run was made"):
            load([("other", "cat"), *rows[1:]], content_hash=before)


@pytest.mark.parametrize(
    ("rows", "more", "parts"),
    [
        (numbered(cat=10), {}, ["rows.csv", "one label 'cat'"]),
        (numbered(cat=30, dog=1), {}, ["too few rows with the label 'dog'"]),
        (numbered(cat=30, dog=2), {}, ["too few rows with the label 'dog'"]),
        (numbered(cat=2, dog=2), {}, ["too few rows"]),
        (numbered(cat=20, dog=20), {"test": [("a", "emu")]}, ["held_out.csv", "'emu'", "cat, dog"]),
        (numbered(cat=20, dog=20, emu=20), {"train_size": 2}, ["train_size = 2", "give at least 3"]),
        (numbered(cat=20, dog=20), {"train_size": 100}, ["train_size = 100", "give at most 23"]),
        (numbered(cat=20, dog=20), {"validation_size": 39}, ["validation_size = 39", "32 rows"]),
    ],
)
def test_what_cannot_be_learned_is_refused(
    load: Load, rows: list[tuple[str, str]], more: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(PlaygroundError) as caught:
        load(rows, **more)
    for part in parts:
        assert part in str(caught.value)


def test_the_refused_sample_size_names_one_that_works(load: Load) -> None:
    rows = numbered(cat=20, dog=20)
    assert len(load(rows, train_size=23).train) == 23
    with pytest.raises(ConfigError):
        load(rows, train_size=24)


@pytest.mark.parametrize("path", [None, ""])
def test_a_csv_task_needs_a_path(path: str | None) -> None:
    with pytest.raises(ConfigError, match="give the path of a CSV file"):
        load_task(TaskConfig(id="csv", path=path), 0)


def test_an_unknown_task_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="task = 'imdb' cannot be used: choose film_reviews"):
        load_task(TaskConfig(id="imdb"), 0)


def test_a_class_that_validation_would_take_whole_keeps_a_row_to_train_on(load: Load) -> None:
    data = load(numbered(cat=60, dog=3), validation_size=45)
    assert set(data.train.labels) == set(data.validation.labels) == {0, 1}


def test_the_majority_rate_is_the_validation_share_of_the_commonest_training_class(load: Load) -> None:
    data = load(numbered(cat=30, dog=70))
    assert data.majority_rate == data.validation.labels.count(1) / len(data.validation)
    assert data.majority_rate == pytest.approx(0.7, abs=0.05)


class TestPairs:
    @staticmethod
    def file(path: Path, rows: int, header: str = "text,text_b,label") -> Path:
        lines = [f"premise {i},hypothesis {i},{'no' if i % 2 else 'yes'}" for i in range(rows)]
        if "text_b" not in header:
            lines = [f"premise {i},{'no' if i % 2 else 'yes'}" for i in range(rows)]
        path.write_text("\n".join([header, *lines]))
        return path

    def test_every_split_keeps_a_text_with_its_second(self, tmp_path: Path) -> None:
        data = load_task(TaskConfig(id="csv", path=str(self.file(tmp_path / "pairs.csv", 60)), train_size=10), 0)
        for split in (data.train, data.validation, data.test):
            assert split.seconds is not None
            assert len(split.seconds) == len(split)
            for (first, second), label in zip(split.inputs, split.labels, strict=True):
                assert first.split()[1] == second.split()[1]
                assert data.classes[label] == ("no" if int(first.split()[1]) % 2 else "yes")
        assert len(data.train) == 10

    def test_a_test_file_of_pairs_goes_with_a_training_file_of_pairs(self, tmp_path: Path) -> None:
        train, test = self.file(tmp_path / "pairs.csv", 60), self.file(tmp_path / "test.csv", 4)
        data = load_task(TaskConfig(id="csv", path=str(train), test_path=str(test)), 0)
        assert data.test.inputs[1] == ("premise 1", "hypothesis 1")

    @pytest.mark.parametrize(
        ("headers", "sentence"),
        [
            (("text,text_b,label", "text,label"), "'test.csv' lacks the column text_b, which the training file has"),
            (("text,label", "text,text_b,label"), "'test.csv' has the column text_b, which the training file lacks"),
        ],
    )
    def test_pairs_and_single_texts_do_not_mix(self, tmp_path: Path, headers: tuple[str, str], sentence: str) -> None:
        train, test = (
            self.file(tmp_path / name, 60, header) for name, header in zip(("a.csv", "test.csv"), headers, strict=True)
        )
        with pytest.raises(TaskError) as caught:
            load_task(TaskConfig(id="csv", path=str(train), test_path=str(test)), 0)
        assert str(caught.value) == f"{sentence}: give both the same columns."

    def test_a_changed_second_text_is_noticed(self, tmp_path: Path) -> None:
        path = self.file(tmp_path / "pairs.csv", 60)
        known = load_task(TaskConfig(id="csv", path=str(path)), 0).content_hash
        path.write_text(path.read_text().replace("hypothesis 7", "hypothesis seven"))
        with pytest.raises(TaskError, match="has changed since this run was made"):
            load_task(TaskConfig(id="csv", path=str(path), content_hash=known), 0)
