"""The library: content-addressed, listed, renamed, deleted, and never half-written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.errors import ConfigError, TaskError
from core.tasks.library import TaskLibrary
from core.tasks.rows import Rows

ROWS = Rows(("a cat", "a dog", "an emu", "a dog again"), ("x", "y", "x", "x"))
OTHER = Rows(("one", "two"), ("0.5", "4.25"), ("eins", "zwei"), ("train", "test"), "similarity")


@pytest.fixture
def library(tmp_path: Path) -> TaskLibrary:
    return TaskLibrary(tmp_path / "tasks")


def test_reading_an_empty_library_creates_nothing(library: TaskLibrary) -> None:
    assert library.tasks() == []
    library.purge_discarded(0.0)
    with pytest.raises(TaskError, match="no task 'pets' of your own: add one"):
        library.find("pets")
    assert not library.folder.exists()


def test_what_was_added_is_listed_and_read_back(library: TaskLibrary) -> None:
    task = library.add(ROWS, name="  pets  and\nmore ", source="pets.csv: CSV.")
    assert (task.name, task.rows, task.pairs, task.kind) == ("pets and more", 4, False, "classes")
    assert list(task.classes.items()) == [("x", 3), ("y", 1)]
    assert task.splits == {}
    assert library.tasks() == [task]
    assert library.rows(task.id) == ROWS
    assert library.find("pets and more") == library.find(task.id) == library.task(task.id) == task


def test_scores_and_splits_are_told(library: TaskLibrary) -> None:
    task = library.add(OTHER, name="sts", source="")
    assert (task.kind, task.pairs, task.classes, task.splits) == ("similarity", True, {}, {"train": 1, "test": 1})
    assert library.rows(task.id) == OTHER


def test_the_same_rows_are_kept_once(library: TaskLibrary) -> None:
    first = library.add(ROWS, name="pets", source="a")
    again = library.add(Rows(ROWS.texts, ROWS.labels), name="animals", source="b")
    assert again == first
    assert len(list(library.folder.glob("*.parquet"))) == 1


def test_one_changed_letter_is_another_task(library: TaskLibrary) -> None:
    first = library.add(ROWS, name="pets", source="")
    second = library.add(Rows(("a Cat", *ROWS.texts[1:]), ROWS.labels), name="pets", source="")
    assert second.id != first.id
    assert second.name == "pets (2)"


def test_a_long_name_that_is_taken_stays_within_the_limit(library: TaskLibrary) -> None:
    library.add(ROWS, name="n" * 80, source="")
    assert library.add(OTHER, name="n" * 80, source="").name == "n" * 76 + " (2)"


def test_renaming_keeps_the_rows_and_refuses_a_taken_name(library: TaskLibrary) -> None:
    pets, other = library.add(ROWS, name="pets", source=""), library.add(OTHER, name="sts", source="")
    assert library.rename(pets.id, "animals").name == "animals"
    assert library.find("animals").id == pets.id
    assert library.rename(pets.id, "animals").name == "animals"
    with pytest.raises(ConfigError, match=r"name = 'animals'.*another task has it"):
        library.rename(other.id, "animals")


@pytest.mark.parametrize("name", ["", "  \n", "n" * 81])
def test_a_name_that_is_none_is_refused_and_nothing_is_kept(library: TaskLibrary, name: str) -> None:
    with pytest.raises(ConfigError, match="name = "):
        library.add(ROWS, name=name, source="")
    assert library.tasks() == []


class TestDeleting:
    def test_a_discarded_task_is_out_of_sight_and_comes_back(self, library: TaskLibrary) -> None:
        task = library.add(ROWS, name="pets", source="")
        library.discard(task.id)
        assert library.tasks() == []
        with pytest.raises(TaskError, match="not in this library"):
            library.rows(task.id)
        library.purge_discarded(older_than_s=60.0)
        library.restore(task.id)
        assert library.tasks() == [task]
        assert library.rows(task.id) == ROWS

    def test_adding_it_again_brings_it_back(self, library: TaskLibrary) -> None:
        task = library.add(ROWS, name="pets", source="")
        library.discard(task.id)
        assert library.add(ROWS, name="pets", source="") == task

    def test_its_files_go_when_the_time_for_undoing_is_over(self, library: TaskLibrary) -> None:
        task, kept = library.add(ROWS, name="pets", source=""), library.add(OTHER, name="sts", source="")
        library.discard(task.id)
        time.sleep(0.01)
        library.purge_discarded(older_than_s=0.0)
        assert {path.stem for path in library.folder.iterdir() if path.suffix} == {kept.id}
        with pytest.raises(TaskError, match="for good"):
            library.restore(task.id)


@pytest.mark.parametrize(
    "task_id", ["own-0", "../own-0123456789abcdef", "own-0123456789ABCDEF", "own-0123456789abcdef"]
)
def test_an_id_that_is_none_never_reaches_a_path(library: TaskLibrary, task_id: str) -> None:
    library.add(ROWS, name="pets", source="")
    for ask in (library.task, library.rows, library.discard):
        with pytest.raises(TaskError, match="not in this library"):
            ask(task_id)
    with pytest.raises(TaskError, match="for good"):
        library.restore(task_id)


def test_damaged_files_are_said(library: TaskLibrary) -> None:
    task, other = library.add(ROWS, name="pets", source=""), library.add(OTHER, name="sts", source="")
    (library.folder / f"{task.id}.json").write_text("{", encoding="utf-8")
    assert library.tasks() == [other]
    with pytest.raises(TaskError, match="cannot be read"):
        library.task(task.id)
    (library.folder / f"{other.id}.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(TaskError, match="damaged"):
        library.rows(other.id)


def test_rows_that_are_not_those_of_their_name_are_said(library: TaskLibrary) -> None:
    task, other = library.add(ROWS, name="pets", source=""), library.add(OTHER, name="sts", source="")
    (library.folder / f"{task.id}.parquet").write_bytes((library.folder / f"{other.id}.parquet").read_bytes())
    with pytest.raises(TaskError, match=f"{task.id} are damaged"):
        library.rows(task.id)
