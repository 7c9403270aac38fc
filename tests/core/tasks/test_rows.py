"""Rows and their file."""

from __future__ import annotations

import dataclasses
import itertools
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from core.errors import TaskError
from core.tasks.rows import Rows, one_line, read_rows_file, write_rows
from tests.cases import each
from tests.core.tasks.files.test_tables import check_sentence

PLAIN = Rows(("a", "猫 🐈\n", "=1"), ("x", "y", "x"))
ROWS = [
    PLAIN,
    Rows(PLAIN.texts, PLAIN.labels, seconds=("p", "q", "r")),
    Rows(PLAIN.texts, PLAIN.labels, splits=("train", "validation", "test")),
    Rows(PLAIN.texts, ("1", "2.5", "0"), ("p", "q", "r"), ("test", "test", "train"), "similarity"),
    Rows((), ()),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.parquet"


def refusal(path: Path) -> str:
    with pytest.raises(TaskError) as caught:
        read_rows_file(path)
    return check_sentence(str(caught.value))


@each("rows", ROWS)
def test_what_is_written_is_read_again(file: Path, rows: Rows) -> None:
    about = {"source": "a file, größer", "": "x" * 10_000}
    write_rows(file, rows, about)
    again, reported = read_rows_file(file)
    assert again == rows
    assert again.content_hash == rows.content_hash
    assert reported == about
    assert list(file.parent.iterdir()) == [file]


def test_a_file_is_replaced_whole(file: Path) -> None:
    write_rows(file, ROWS[0], {})
    write_rows(file, ROWS[1], {"n": "2"})
    assert read_rows_file(file) == (ROWS[1], {"n": "2"})


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="could not be written"):
        write_rows(tmp_path / "rows.parquet", Rows(("\ud800",), ("x",)), {})
    (tmp_path / "taken").mkdir()
    with pytest.raises(TaskError, match="could not be written"):
        write_rows(tmp_path / "taken", PLAIN, {})
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TaskError, match="could not be written"):
        write_rows(tmp_path / "file" / "rows.parquet", PLAIN, {})


def test_a_hash_is_of_everything_in_its_order() -> None:
    changed = [
        *ROWS,
        dataclasses.replace(PLAIN, labels=("x", "x", "y")),
        dataclasses.replace(PLAIN, texts=("a", "猫 🐈", "=1")),
        dataclasses.replace(PLAIN, kind="similarity"),
        dataclasses.replace(PLAIN, seconds=PLAIN.texts),
        PLAIN.take([1, 0, 2]),
        PLAIN.take([0, 1]),
        Rows(("ab", "c"), ("x", "x")),
        Rows(("a", "bc"), ("x", "x")),
        Rows(("a", "b"), ("c", "d")),
        Rows(("a", "b"), ("c", "d"), ("e", "f")),
    ]
    for one, other in itertools.combinations(changed, 2):
        assert one.content_hash != other.content_hash
    assert PLAIN.content_hash == Rows(tuple(map(str, PLAIN.texts)), PLAIN.labels).content_hash


@each("rows", ROWS[:4])
def test_rows_can_be_taken_out(rows: Rows) -> None:
    order = [2, 0, 0]
    taken = rows.take(order)
    assert len(taken) == 3
    assert taken.kind == rows.kind
    for name in ("texts", "labels", "seconds", "splits"):
        before = getattr(rows, name)
        assert getattr(taken, name) == (before and tuple(before[row] for row in order))
    assert len(rows.take([])) == 0


def test_a_missing_file_and_a_folder_are_refused(file: Path) -> None:
    assert "is missing" in refusal(file)
    file.mkdir()
    assert "is missing" in refusal(file)


def test_a_damaged_file_is_refused_in_one_sentence(file: Path) -> None:
    write_rows(file, PLAIN, {"a": "b"})
    whole = file.read_bytes()
    rng = random.Random(0)
    messages = []
    for _ in range(200):
        raw = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        file.write_bytes(rng.choice([bytes(raw), whole[: rng.randrange(len(whole))]]))
        try:
            read_rows_file(file)
        except TaskError as error:
            messages.append(check_sentence(str(error)))
    assert len(messages) > 100
    assert all("is damaged" in message for message in messages)


@each(
    ("columns", "metadata"),
    [
        ({"text": ["a"], "label": ["x"]}, None),
        ({"text": ["a"], "label": ["x"]}, b"[]"),
        ({"text": ["a"], "label": ["x"]}, b'{"version": 2, "kind": "classes", "metadata": {}}'),
        ({"text": ["a"], "label": ["x"]}, b'{"version": 1, "kind": "other", "metadata": {}}'),
        ({"text": ["a"], "label": ["x"]}, b'{"version": 1, "kind": "classes"}'),
        ({"text": ["a"]}, b'{"version": 1, "kind": "classes", "metadata": {}}'),
        ({"text": ["a"], "label": [1]}, b'{"version": 1, "kind": "classes", "metadata": {}}'),
        ({"text": ["a"], "label": [None]}, b'{"version": 1, "kind": "classes", "metadata": {}}'),
        ({"text": ["a"], "label": ["x"], "split": ["dev"]}, b'{"version": 1, "kind": "classes", "metadata": {}}'),
        ({"text": ["a"], "label": ["x"], "more": ["y"]}, b'{"version": 1, "kind": "classes", "metadata": {}}'),
    ],
)
def test_another_parquet_file_is_refused(file: Path, columns: dict[str, list[object]], metadata: bytes | None) -> None:
    table = pa.table(columns)
    parquet.write_table(table.replace_schema_metadata({b"scl_rows": metadata} if metadata else None), file)
    assert "is damaged" in refusal(file)


def test_an_error_of_a_library_is_told_in_one_short_line() -> None:
    assert one_line(ValueError("a\tb\x0e c.\nmore")) == "a b c"
    assert one_line(OSError(28, "No space left on device")) == "No space left on device"
    assert one_line(MemoryError()) == "MemoryError"
    assert one_line(ValueError("x" * 500)) == "x" * 160 + "…"
