"""Parquet files: values as the text that a person would write."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from core.errors import TaskError
from core.tasks.files.parquet import UNPACKED_FACTOR
from core.tasks.files.tables import open_table


def stream(table: pa.Table, **options: Any) -> io.BytesIO:
    out = io.BytesIO()
    parquet.write_table(table, out, **options)
    return out


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array(["a", None, ""]), ["a", "", ""]),
        (pa.array(["a", "b", "a"], pa.large_string()), ["a", "b", "a"]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", "", "a"]),
        (pa.array([1, None, -3], pa.int64()), ["1", "", "-3"]),
        (pa.array([1, 0, 255], pa.uint8()), ["1", "0", "255"]),
        (pa.array([1.0, 0.5, None]), ["1", "0.5", ""]),
        (pa.array([float("nan"), 2.0, 1e300]), ["", "2", str(int(1e300))]),
        (pa.array([float("inf"), -0.25, 4.25], pa.float32()), ["inf", "-0.25", "4.25"]),
        (pa.array([True, False, None]), ["true", "false", ""]),
        (pa.array([b"abc", None, b""]), ["(3 bytes)", "", "(0 bytes)"]),
        (pa.array([["a", "é"], [], None]), ['["a", "é"]', "[]", ""]),
        (pa.array([{"a": 1}, {"a": None}, None]), ['{"a": 1}', '{"a": null}', ""]),
        (pa.array([None, None, None]), ["", "", ""]),
        (pa.array([Decimal("1.50"), None, Decimal("2.00")]), ["1.50", "", "2.00"]),
        (pa.array([datetime.date(2020, 1, 2), None, None]), ["2020-01-02", "", ""]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_every_kind_of_column_becomes_text(values: pa.Array, texts: list[str]) -> None:
    table = open_table(stream(pa.table({"text": ["x", "y", "z"], "value": values})), "rows.parquet")
    assert list(table.records()) == [(i, ("xyz"[i - 1], texts[i - 1])) for i in (1, 2, 3)]
    assert [row[1] for row in table.preview] == texts


def test_what_a_table_says_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(stream(pa.table({"text": ["x"] * 500, "label": [1] * 500})).getvalue())
    table = open_table(path)
    assert (table.name, table.format, table.encoding, table.delimiter) == ("rows.parquet", "Parquet", None, None)
    assert table.columns == ("text", "label")
    assert table.header
    assert len(table.preview) == 200
    assert table.place == "row"
    assert list(table.records()) == list(table.records())


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("group", [100, 10_000])
def test_rows_are_counted_over_batches_and_groups(rows: int, group: int) -> None:
    texts = [f"text {i % 700}" for i in range(rows)]
    table = open_table(stream(pa.table({"text": texts}), row_group_size=group), "rows.parquet")
    assert list(table.records()) == [(i + 1, (text,)) for i, text in enumerate(texts)]


def test_columns_that_are_not_used_are_left_empty() -> None:
    source = stream(pa.table({"id": [1, 2], "text": ["a", "b"], "vector": [[0.0] * 100] * 2, "label": [0, 1]}))
    table = open_table(source, "rows.parquet")
    assert list(table.records({"text", "label"})) == [(1, ("", "a", "", "0")), (2, ("", "b", "", "1"))]


class TestClassNames:
    def table(self, features: Any) -> list[str]:
        about = json.dumps({"info": {"features": features}}).encode()
        kept = pa.table({"text": ["a", "b", "c"], "label": [1, 0, -1]}).replace_schema_metadata({b"huggingface": about})
        return [fields[1] for _, fields in open_table(stream(kept), "rows.parquet").records()]

    def test_numbers_get_their_names(self) -> None:
        label = {"names": ["neg", "pos"], "_type": "ClassLabel"}
        assert self.table({"text": {"dtype": "string", "_type": "Value"}, "label": label}) == ["pos", "neg", ""]

    @pytest.mark.parametrize(
        "features",
        [
            {},
            [],
            None,
            {"label": {"dtype": "int64", "_type": "Value"}},
            {"label": ["x"]},
            {"label": {"_type": "ClassLabel"}},
        ],
    )
    def test_without_names_they_stay_numbers(self, features: Any) -> None:
        assert self.table(features) == ["1", "0", "-1"]

    def test_what_is_no_json_is_left_alone(self) -> None:
        kept = pa.table({"text": ["a"], "label": [1]}).replace_schema_metadata({b"huggingface": b"{" * 50_000})
        assert list(open_table(stream(kept), "rows.parquet").records()) == [(1, ("a", "1"))]


class TestLimits:
    def test_a_file_that_says_that_it_unpacks_to_much_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        text = "x" * (2**20 * UNPACKED_FACTOR + 1)
        source = stream(pa.table({"text": [text], "label": ["a"]}), compression="zstd")
        assert len(source.getvalue()) < 2**20
        with pytest.raises(TaskError, match=r"unpacks to 4 MB, and at most 4 MB are read: .* SCL_MAX_FILE_MB"):
            open_table(source, "rows.parquet")

    def test_a_file_that_does_not_say_so_is_refused_when_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = stream(pa.table({"text": [f"{i}" * 500 for i in range(3000)], "label": ["a"] * 3000}))
        table = open_table(source, "rows.parquet")
        monkeypatch.setattr("core.tasks.files.parquet.UNPACKED_FACTOR", 0)
        with pytest.raises(TaskError, match="unpacks to more when it is read, and at most"):
            list(table.records())

    def test_a_text_that_comes_often_is_counted_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        source = stream(pa.table({"text": ["x" * 10_000] * 1000, "label": ["a"] * 1000}))
        assert len(list(open_table(source, "rows.parquet").records())) == 1000

    def test_two_columns_of_one_name_are_refused(self) -> None:
        source = stream(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]))
        with pytest.raises(TaskError, match="more than one column 'text'"):
            open_table(source, "rows.parquet")
