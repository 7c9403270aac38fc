"""Tasks of one's own on the command line: what is said, what is kept, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from core.cli_tasks import tasks
from core.errors import PlaygroundError
from core.tasks import TASKS, TaskLibrary
from tests.conftest import made_rows, write_csv


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def library(runs: Path) -> TaskLibrary:
    return TaskLibrary(runs / "tasks")


def call(runs: Path, *words: object) -> Result:
    """What a command prints; what it raises is raised here."""
    result = CliRunner().invoke(tasks, [*map(str, words), "--runs", str(runs)])
    if isinstance(result.exception, PlaygroundError):
        raise result.exception
    return result


def test_the_list_has_the_bundled_tasks_and_ones_own(runs: Path, library: TaskLibrary, small_csv: Path) -> None:
    call(runs, "add", small_csv, "--name", "Ups and downs")
    (own,) = library.tasks()
    text = call(runs, "list").output
    assert all(name in text for name in TASKS)
    assert f"{own.id}  Ups and downs: 120 rows. small.csv: CSV, UTF-8, comma; 120 rows." in text
    listed = json.loads(call(runs, "list", "--json").stdout)
    assert listed["bundled"] == list(TASKS)
    assert [task["id"] for task in listed["own"]] == [own.id]


def test_adding_prints_what_the_task_is_called_by(runs: Path, library: TaskLibrary, small_csv: Path) -> None:
    told = json.loads(call(runs, "add", small_csv, "--json").stdout)
    assert told["id"] == library.tasks()[0].id
    assert told["name"] == "small"
    assert told["rows"] == 120


def test_problems_are_listed_and_nothing_is_kept_until_they_may_go(
    runs: Path, library: TaskLibrary, tmp_path: Path
) -> None:
    rows = made_rows(40)
    path = write_csv(tmp_path / "rows.csv", [*rows, ("", "good"), rows[0]])
    result = CliRunner().invoke(tasks, ["add", str(path), "--runs", str(runs)])
    assert isinstance(result.exception, PlaygroundError)
    assert "--drop empty_text" in str(result.exception)
    assert "Line 42" in result.stderr
    assert "rows without a text: 1" in result.stderr
    assert not runs.exists()
    call(runs, "add", path, "--drop", "empty_text")
    assert library.tasks()[0].rows == 41
    call(runs, "add", path, "--drop", "all")
    assert library.tasks()[0].rows == 40


def test_columns_and_a_test_file_may_be_named(runs: Path, library: TaskLibrary, tmp_path: Path) -> None:
    header = "title\tbody\tgrade\n"
    for name, count in (("train", 40), ("test", 10)):
        lines = [f"t{i}\ta longer body, number {i} of {name}\t{i % 2}\n" for i in range(count)]
        (tmp_path / f"{name}.tsv").write_text(header + "".join(lines))
    columns = ["--text-column", "title", "--label-column", "grade", "--second-column", ""]
    call(runs, "add", tmp_path / "train.tsv", "--test", tmp_path / "test.tsv", *columns)
    (task,) = library.tasks()
    assert (task.rows, task.splits, task.pairs) == (50, {"train": 40, "test": 10}, False)
    assert library.rows(task.id).texts[0] == "t0"


def test_a_task_is_renamed_and_deleted_by_name_or_id(runs: Path, library: TaskLibrary, small_csv: Path) -> None:
    call(runs, "add", small_csv)
    assert call(runs, "rename", "small", "Films").output == "It is now called Films.\n"
    assert call(runs, "delete", library.tasks()[0].id).output == "Films is deleted.\n"
    assert library.tasks() == []
    with pytest.raises(PlaygroundError, match="no task 'Films' of your own: add one"):
        call(runs, "delete", "Films")


def test_a_file_that_is_none_is_refused_in_a_sentence(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(PlaygroundError, match="was not found"):
        call(runs, "add", tmp_path / "nothing.csv")
    assert not runs.exists()


def test_a_hub_name_that_can_be_none_is_refused_in_a_sentence(runs: Path) -> None:
    with pytest.raises(PlaygroundError, match=r"repository = '\.\./etc'"):
        call(runs, "fetch", "../etc", "--text-column", "a", "--label-column", "b")
    assert not runs.exists()
