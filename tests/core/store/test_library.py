"""The library: content-addressed, listed, renamed, deleted, and never half-written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from core.errors import ConfigError, StoreError, TaskError
from core.store import database
from core.store import library as library_module
from core.store.database import Database
from core.store.library import LibraryTask, TaskLibrary
from core.tasks.rows import Rows, write_rows

ROWS = Rows(("a cat", "a dog", "an emu", "a dog again"), ("x", "y", "x", "x"))
OTHER = Rows(("one", "two"), ("0.5", "4.25"), ("eins", "zwei"), ("train", "test"), "similarity")


@pytest.fixture
def library(tmp_path: Path) -> TaskLibrary:
    return TaskLibrary(tmp_path / "runs")


@pytest.fixture
def pets(library: TaskLibrary) -> LibraryTask:
    return library.add(ROWS, name="pets", source="a")


def test_reading_an_empty_library_creates_nothing(library: TaskLibrary) -> None:
    assert library.tasks() == []
    library.purge_discarded(0.0)
    with pytest.raises(TaskError, match="You have no task 'pets': add one"):
        library.find("pets")
    assert not (library.folder / "runs.sqlite3").exists()


def test_what_was_added_is_listed_and_read_back(library: TaskLibrary) -> None:
    task = library.add(ROWS, name="  pets  and\nmore ", source="pets.csv: CSV.")
    assert (task.name, task.rows, task.pairs, task.kind) == ("pets and more", 4, False, "classes")
    assert list(task.classes.items()) == [("x", 3), ("y", 1)]
    assert task.splits == {}
    assert library.tasks() == [task]
    assert library.rows(task.id) == ROWS
    assert library.find("pets and more") == library.find(task.id) == library.task(task.id) == task
    scores = library.add(OTHER, name="sts", source="")
    assert (scores.kind, scores.pairs, scores.classes) == ("similarity", True, {})
    assert scores.splits == {"train": 1, "test": 1}
    assert library.rows(scores.id) == OTHER


def test_the_same_rows_are_kept_once(library: TaskLibrary) -> None:
    assert library.find_rows(ROWS) is None
    first = library.add(ROWS, name="pets", source="a")
    same = Rows(ROWS.texts, ROWS.labels)
    assert library.add(same, name="animals", source="b") == library.find_rows(same) == first
    assert library.find_rows(OTHER) is None
    assert len(list(library.rows_folder.glob("*.parquet"))) == 1
    second = library.add(Rows(("a Cat", *ROWS.texts[1:]), ROWS.labels), name="pets", source="")
    assert second.id != first.id
    assert second.name == "pets (2)"


def test_a_long_name_that_is_taken_stays_within_the_limit(library: TaskLibrary) -> None:
    library.add(ROWS, name="n" * 80, source="")
    assert library.add(OTHER, name="n" * 80, source="").name == "n" * 76 + " (2)"


def test_renaming_keeps_the_rows_and_refuses_a_taken_name(library: TaskLibrary, pets: LibraryTask) -> None:
    other = library.add(OTHER, name="sts", source="")
    assert library.rename(pets.id, "animals").name == "animals"
    assert library.find("animals").id == pets.id
    assert library.rename(pets.id, "animals").name == "animals"
    with pytest.raises(ConfigError, match=r"name = 'animals'.*another task has this name"):
        library.rename(other.id, "animals")


@pytest.mark.parametrize("name", ["", "  \n", "n" * 81])
def test_a_name_that_is_none_is_refused_and_nothing_is_kept(library: TaskLibrary, name: str) -> None:
    with pytest.raises(ConfigError, match="name = "):
        library.add(ROWS, name=name, source="")
    assert library.tasks() == []


class TestDeleting:
    def test_discarded_tasks_are_out_of_sight_known_and_come_back(
        self, library: TaskLibrary, pets: LibraryTask
    ) -> None:
        assert library.discarded() == []
        other = library.add(OTHER, name="sts", source="")
        library.discard(pets.id)
        time.sleep(0.01)
        library.discard(other.id)
        assert library.tasks() == []
        with pytest.raises(TaskError, match="not in this library"):
            library.rows(pets.id)
        assert [task.name for task in library.discarded()] == ["sts", "pets"]
        assert library.discarded()[0].discarded_at == pytest.approx(time.time(), abs=10)
        assert library.discarded(within_s=0.0) == []
        library.purge_discarded(older_than_s=60.0)
        library.restore(pets.id)
        assert [task.name for task in library.discarded()] == ["sts"]
        assert library.tasks() == [pets]
        assert library.rows(pets.id) == ROWS

    def test_adding_it_again_brings_it_back_by_the_name_that_is_given_now(
        self, library: TaskLibrary, pets: LibraryTask
    ) -> None:
        library.discard(pets.id)
        assert library.find_rows(ROWS) is None
        again = library.add(ROWS, name="animals", source="b")
        assert (again.id, again.name, again.source) == (pets.id, "animals", "b")

    def test_what_comes_back_has_a_name_of_its_own(self, library: TaskLibrary, pets: LibraryTask) -> None:
        library.discard(pets.id)
        library.add(OTHER, name="pets", source="")
        library.restore(pets.id)
        library.restore(pets.id)
        assert sorted(found.name for found in library.tasks()) == ["pets", "pets (2)"]
        assert library.task(pets.id).name == "pets (2)"

    def test_one_alone_is_deleted_for_good(self, library: TaskLibrary, pets: LibraryTask) -> None:
        undoable = library.add(OTHER, name="sts", source="")
        library.discard(undoable.id)
        library.delete(pets.id)
        assert library.tasks() == []
        with pytest.raises(TaskError, match="permanently"):
            library.restore(pets.id)
        library.restore(undoable.id)
        assert library.rows(undoable.id) == OTHER
        with pytest.raises(TaskError, match="not in this library"):
            library.delete(pets.id)


@pytest.mark.parametrize(
    "task_id", ["own-0", "../own-0123456789abcdef", "own-0123456789ABCDEF", "own-0123456789abcdef"]
)
@pytest.mark.usefixtures("pets")
def test_an_id_that_is_none_never_reaches_a_path(library: TaskLibrary, task_id: str) -> None:
    for ask in (library.task, library.rows, library.discard, library.delete):
        with pytest.raises(TaskError, match="not in this library"):
            ask(task_id)
    with pytest.raises(TaskError, match="permanently"):
        library.restore(task_id)


@pytest.mark.parametrize("how", ["gone", "no parquet", "other rows"])
def test_adding_the_rows_again_mends_their_file(library: TaskLibrary, pets: LibraryTask, how: str) -> None:
    path = library.rows_folder / f"{pets.id}.parquet"
    if how == "gone":
        path.unlink()
    elif how == "no parquet":
        path.write_bytes(b"PAR1 no")
    else:
        write_rows(path, OTHER, {})
    with pytest.raises(TaskError, match=r"missing: add the data again|damaged.*add (the|its) data again"):
        library.rows(pets.id)
    assert library.add(ROWS, name="animals", source="b") == pets
    assert library.task(pets.id).changed_at > pets.changed_at
    assert library.rows(pets.id) == ROWS


class TestInTheWay:
    """Obstacles to a change of the library: each gives one error message, or postpones the change."""

    def test_another_process_that_changes_it(self, library: TaskLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
        task = library.add(ROWS, name="pets", source="")
        with Database(library.folder).transaction():
            for change in (
                lambda: library.add(OTHER, name="sts", source=""),
                lambda: library.rename(task.id, "x"),
                lambda: library.discard(task.id),
                lambda: library.delete(task.id),
                lambda: library.restore(task.id),
            ):
                with pytest.raises(StoreError, match="Another process is changing the runs folder"):
                    change()
            library.purge_discarded(0.0)  # postponed
        assert library.tasks() == [task]

    @pytest.mark.parametrize("folder", ["folder", "rows_folder"])
    def test_a_folder_that_cannot_be_made(self, library: TaskLibrary, folder: str) -> None:
        path: Path = getattr(library, folder)
        path.parent.mkdir(exist_ok=True)
        path.write_text("a file")
        with pytest.raises(TaskError, match="cannot be created"):
            library.add(ROWS, name="pets", source="")

    def test_rows_are_written_before_anybody_has_to_wait(
        self, library: TaskLibrary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
        library.add(OTHER, name="sts", source="")
        free = []

        def write(path: Path, rows: Rows, metadata: dict[str, str]) -> None:
            with Database(library.folder).transaction():
                free.append(path.stem)
            write_rows(path, rows, metadata)

        monkeypatch.setattr(library_module, "write_rows", write)
        task = library.add(ROWS, name="pets", source="")
        assert free == [task.id]

    def test_rows_that_were_purged_while_waiting_are_written_again(
        self, library: TaskLibrary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        transaction = Database.transaction

        def purged_before(self: Database) -> object:
            waiting = not self._connection().in_transaction
            for path in library.rows_folder.glob("*.parquet") if waiting else ():
                path.unlink()
            return transaction(self)

        monkeypatch.setattr(Database, "transaction", purged_before)
        task = library.add(ROWS, name="pets", source="")
        assert library.rows(task.id) == ROWS


class TestPurge:
    def test_a_task_goes_with_its_rows_when_the_time_for_undoing_is_over(
        self, library: TaskLibrary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
        task, other = library.add(ROWS, name="pets", source=""), library.add(OTHER, name="sts", source="")
        library.discard(task.id)
        with Database(library.folder).transaction():  # another process changes the library
            library.purge_discarded(60.0)
            library.purge_discarded(0.0)
        library.restore(task.id)  # it was postponed
        library.discard(task.id)
        library.purge_discarded(0.0)
        assert [path.stem for path in library.rows_folder.iterdir()] == [other.id]
        with pytest.raises(TaskError, match="permanently"):
            library.restore(task.id)

    @pytest.mark.parametrize(("age_s", "stays"), [(3500, True), (3700, False)])
    def test_what_an_interrupted_addition_left_goes_after_an_hour(
        self, library: TaskLibrary, age_s: float, stays: bool
    ) -> None:
        task = library.add(ROWS, name="pets", source="")
        left = {library.rows_folder / name for name in (".0123abcd.partial", "own-0123456789abcdef.parquet")}
        own = {*library.rows_folder.iterdir()}
        for path in left | own:
            path.touch()
            os.utime(path, (time.time() - age_s,) * 2)
        library.purge_discarded(60.0)
        assert {*library.rows_folder.iterdir()} == own | (left if stays else set())
        assert library.rows(task.id) == ROWS
