"""Tasks of the user on the command line: output, stored tasks and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from core.cli.tasks import tasks
from core.errors import PlaygroundError
from core.store import TaskLibrary
from core.tasks import TASKS
from core.tasks.hub.fetch import Fetched, Progress
from core.tasks.hub.registry import HUB_SETS, HubRequest, request_of
from core.tasks.rows import Rows
from core.workers import hub_job
from tests.cases import each
from tests.conftest import made_rows, write_csv

ROWS = Rows(tuple(f"text {i}" for i in range(20)), ("up", "down") * 10, splits=("train",) * 20)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def library(runs: Path) -> TaskLibrary:
    return TaskLibrary(runs)


def call(runs: Path, *words: object) -> Result:
    """Run a command. Returns: its result. Raises: the error of the command."""
    result = CliRunner().invoke(tasks, [*map(str, words), "--runs", str(runs)])
    if isinstance(result.exception, PlaygroundError):
        raise result.exception
    return result


def test_an_added_task_is_printed_and_listed_with_the_bundled_ones(
    runs: Path, library: TaskLibrary, small_csv: Path
) -> None:
    reported = json.loads(call(runs, "add", small_csv, "--json").stdout)
    (own,) = library.tasks()
    assert (reported["id"], reported["name"], reported["rows"]) == (own.id, "small", 120)
    text = call(runs, "list").output
    assert all(name in text for name in TASKS)
    assert f"{own.id}  small: 120 rows. small.csv: CSV, UTF-8, comma; 120 rows." in text
    listed = json.loads(call(runs, "list", "--json").stdout)
    assert listed["bundled"] == list(TASKS)
    assert [task["id"] for task in listed["own"]] == [own.id]


@pytest.mark.parametrize(
    ("raw", "options", "texts"),
    [
        ("'a{}|b',{}\n", ("--quote", "single"), "a{}|b"),
        ("'a{}|b',{}\n", ("--quote", "none"), "'a{}|b'"),
        ("a{}, b|{}\n", ("--delimiter", "bar"), "a{}, b"),
        ("a{}\\, b,{}\n", ("--escape", "backslash", "--no-header"), "a{}, b"),
    ],
)
def test_how_a_file_is_read_can_be_said(
    runs: Path, library: TaskLibrary, tmp_path: Path, raw: str, options: tuple[str, ...], texts: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("".join(raw.format(i, "up" if i % 2 else "down") for i in range(20)), encoding="utf-8")
    call(runs, "add", path, *options)
    (task,) = library.tasks()
    assert library.rows(task.id).texts == tuple(texts.format(i) for i in range(20))


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
    assert call(runs, "delete", library.tasks()[0].id).output == "Deleted Films.\n"
    assert library.tasks() == []
    with pytest.raises(PlaygroundError, match="You have no task 'Films': add one"):
        call(runs, "delete", "Films")


def test_rows_that_are_here_already_are_said_to_be(runs: Path, library: TaskLibrary, small_csv: Path) -> None:
    assert "were added before" not in call(runs, "add", small_csv, "--name", "First").stderr
    again = call(runs, "add", small_csv, "--name", "Second", "--json")
    assert "These rows were added before, as First." in again.stderr
    assert json.loads(again.stdout)["name"] == "First"


def test_a_file_or_a_hub_name_that_is_none_is_refused_in_a_sentence(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(PlaygroundError, match="was not found"):
        call(runs, "add", tmp_path / "nothing.csv")
    with pytest.raises(PlaygroundError, match=r"repository = '\.\./etc'"):
        call(runs, "fetch", "../etc", "--text-column", "a", "--label-column", "b")
    assert not runs.exists()


class TestFetch:
    """Requests and messages of `tasks fetch`. `tests/core/tasks/hub` uses the real clients."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[HubRequest]:
        requests: list[HubRequest] = []

        def fetch(request: HubRequest, *, progress: Progress) -> Fetched:
            requests.append(request)
            progress(20, 20, "reading train")
            return Fetched(ROWS, "from the Hub", "left out: 2 with no label")

        monkeypatch.setattr(hub_job, "fetch", fetch)
        return requests

    def test_a_known_set_is_kept_under_its_name_and_what_was_left_out_is_said(
        self, runs: Path, library: TaskLibrary, asked: list[HubRequest]
    ) -> None:
        result = call(runs, "fetch", "sst2")
        assert asked == [request_of(HUB_SETS["sst2"])]
        (task,) = library.tasks()
        assert (task.name, task.source) == ("SST-2", "from the Hub; left out: 2 with no label")
        assert result.stdout == f"SST-2 ({task.id}): 20 rows. Use it with --task {task.id}.\n"
        assert "Left out: 2 with no label.\n" in result.stderr

    def test_every_part_of_a_request_can_be_given(
        self, runs: Path, library: TaskLibrary, asked: list[HubRequest]
    ) -> None:
        words = "--config en --revision v1 --text-column a --second-column b --label-column c --max-rows 50"
        call(runs, "fetch", "acme/tiny", *words.split(), *["--train", "x", "--validation", "y", "--test", "z"])
        given = {"config": "en", "revision": "v1", "text": "a", "text_b": "b", "label": "c", "max_rows": 50}
        [request] = asked
        assert request == HubRequest(repository="acme/tiny", train="x", validation="y", test="z", **given)
        assert library.tasks()[0].name == "tiny en"

    @pytest.mark.parametrize("name", ["n" * 81, "  "])
    def test_a_name_that_is_none_is_refused_before_anything_is_fetched(
        self, runs: Path, asked: list[HubRequest], name: str
    ) -> None:
        with pytest.raises(PlaygroundError, match="name = "):
            call(runs, "fetch", "sst2", "--name", name)
        assert asked == []
        assert not runs.exists()

    @each(
        ("more", "remedy"),
        [((), "Choose other splits or"), (("--max-rows", "20"), "Ask for more rows, or choose other splits or")],
    )
    def test_rows_that_make_no_task_are_not_kept(
        self, runs: Path, asked: list[HubRequest], monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], remedy: str
    ) -> None:
        one = Rows(ROWS.texts, ("up",) * 20, splits=ROWS.splits)
        monkeypatch.setattr(hub_job, "fetch", lambda *_, **__: Fetched(one, "", ""))
        with pytest.raises(PlaygroundError, match=rf"^'SST-2' has only the label 'up': .* classes\. {remedy}"):
            call(runs, "fetch", "sst2", *more)
        assert not runs.exists()
