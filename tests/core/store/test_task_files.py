from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.store.library import TaskLibrary
from core.store.task_entry import task_id_of
from core.tasks.rows import Rows, write_rows

ROWS = Rows(("a cat", "a dog", "an emu", "a dog again"), ("x", "y", "x", "x"))
ID = task_id_of(ROWS)
ENTRY: dict[str, Any] = {
    "id": ID,
    "name": "pets",
    "source": "pets.csv: CSV.",
    "kind": "classes",
    "pairs": False,
    "rows": 4,
    "classes": {"x": 3, "y": 1},
    "splits": {},
    "created_at": 5.0,
    "discarded_at": None,
}
NO_ENTRIES = {
    "half": '{"id": ',
    "nothing": "",
    "no text": b"\xff\xfe\x00",
    "a list": "[]",
    "nested": "[" * 100_000,
    "a field less": json.dumps({"id": ID}),
    "another task": json.dumps(ENTRY | {"id": "own-0123456789abcdef"}),
    "no time": json.dumps(ENTRY | {"created_at": "now"}),
    "no kind": json.dumps(ENTRY | {"kind": "x"}),
}


def older(folder: Path, content: str | bytes) -> TaskLibrary:
    """The library of a store in which the version before kept a task."""
    write_rows(folder / "tasks" / f"{ID}.parquet", ROWS, {})
    (folder / "tasks" / f"{ID}.json").write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "tasks" / "own-..json").write_text("{}")
    return TaskLibrary(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    return tmp_path


def test_entries_become_rows(folder: Path) -> None:
    (task,) = older(folder, json.dumps(ENTRY)).tasks()
    assert (task.id, task.name, task.source, task.rows) == (ID, "pets", "pets.csv: CSV.", 4)
    assert (task.kind, task.pairs) == ("classes", False)
    assert (list(task.classes.items()), task.splits, task.created_at) == ([("x", 3), ("y", 1)], {}, 5.0)
    assert TaskLibrary(folder).rows(ID) == ROWS


def test_a_discarded_one_can_be_brought_back(folder: Path) -> None:
    library = older(folder, json.dumps(ENTRY | {"discarded_at": 6.0}))
    library.restore(ID)
    assert library.name(ID) == "pets"


@pytest.mark.parametrize("content", NO_ENTRIES.values(), ids=NO_ENTRIES)
def test_a_damaged_entry_is_made_again_from_its_rows(folder: Path, content: str | bytes) -> None:
    (task,) = older(folder, content).tasks()
    assert (task.id, task.rows, list(task.classes.items())) == (ID, 4, [("x", 3), ("y", 1)])


def test_nothing_can_be_had_where_both_are_damaged(folder: Path) -> None:
    library = older(folder, "{")
    (library.rows_folder / f"{ID}.parquet").write_bytes(b"PAR1 no")
    again = library.add(Rows(("one", "two"), ("x", "y")), name="other", source="")
    assert library.tasks() == [again]
