"""Parquet files: values formatted as text that a user would write."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.config import ReadingConfig
from core.errors import ConfigError, TaskError
from core.tasks.files.delimited import UnreadableRow
from core.tasks.files.parquet import open_parquet
from core.tasks.files.reading import read_rows
from core.tasks.files.tables import open_table
from tests.cases import each

ROOT = Path(__file__).resolve().parents[4]
# `ru_maxrss` includes the parent's memory before exec, so a better source is preferred where there is one.
READER = """
import json, re, resource, sys, time
from pathlib import Path
from core.config import ReadingConfig
from core.errors import ConfigError, TaskError
from core.tasks.files.reading import read_file

start = time.process_time()
try:
    found = read_file(Path(sys.argv[1])).counts
except TaskError as error:
    found = str(error)
status = Path("/proc/self/status")
if status.is_file():
    peak_mb = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]) / 2**10
else:
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([found, peak_mb, time.process_time() - start]))
"""


def stream(table: pa.Table, **options: Any) -> io.BytesIO:
    out = io.BytesIO()
    parquet.write_table(table, out, **options)
    return out


@each(
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
        (pa.array([" a\n", "\u3000b", " "]), ["a", "b", ""]),
        (pa.array(["a", "b", "a"]).cast(pa.string_view()), ["a", "b", "a"]),
        (pa.array([3, None, 3]).dictionary_encode(), ["3", "", "3"]),
        (pa.array([None, None, None]), ["", "", ""]),
        (pa.array([Decimal("1.50"), None, Decimal("2.00")]), ["1.50", "", "2.00"]),
        (pa.array([datetime.date(2020, 1, 2), None, None]), ["2020-01-02", "", ""]),
    ],
)
def test_every_kind_of_column_becomes_text(values: pa.Array, texts: list[str]) -> None:
    table = open_table(stream(pa.table({"text": ["x", "y", "z"], "value": values})), "rows.parquet")
    assert list(table.records()) == [(i, ("xyz"[i - 1], texts[i - 1])) for i in (1, 2, 3)]
    assert [row[1] for row in table.preview] == texts


def test_table_attributes(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(stream(pa.table({"text": ["x"] * 500, "label": [1] * 500})).getvalue())
    table = open_table(path)
    assert (table.name, table.format, table.encoding, table.delimiter) == ("rows.parquet", "Parquet", None, None)
    assert table.columns == ("text", "label")
    assert table.header
    assert len(table.preview) == 200
    assert table.place == "row"
    assert list(table.records()) == list(table.records())


@each("rows", [1, 2_047, 2_048, 2_049, 5_000])
def test_rows_are_counted_over_chunks_and_groups(rows: int) -> None:
    texts = [f"text {i % 700}" for i in range(rows)]
    table = open_table(stream(pa.table({"text": texts}), row_group_size=1_000), "rows.parquet")
    assert list(table.records()) == [(i + 1, (text,)) for i, text in enumerate(texts)]


@each("encoding", ["dictionary", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@each("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_texts_are_read_in_every_encoding(encoding: str, compression: str) -> None:
    cells = ("", "a", "ab", 'abc, "d"', "abd", "naïve 猫 🐈", "x" * 3_000)
    texts = [cells[(i * i) % 7] if i % 5 else None for i in range(1_000)]
    options = {} if encoding == "dictionary" else {"use_dictionary": False, "column_encoding": {"text": encoding}}
    source = stream(pa.table({"id": list(range(1_000)), "text": texts}), compression=compression, **options)
    table = open_table(source, "rows.parquet")
    assert [fields[1] for _, fields in table.records()] == [text or "" for text in texts]
    assert [row[1] for row in table.preview] == [(text or "")[:2_048] for text in texts[:200]]
    assert [fields for _, fields in table.records({"text"})] == [("", text or "") for text in texts]


class TestColumnsThatAreNotRead:
    @each(
        ("values", "kind"),
        [
            (pa.array([b"abc"]), "BLOB"),
            (pa.array([b"abc"]).dictionary_encode(), "BLOB"),
            (pa.array([["a", "é"]]), "VARCHAR[]"),
            (pa.array([{"a": 1}]), "STRUCT(a BIGINT)"),
            (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "MAP(VARCHAR, BIGINT)"),
        ],
    )
    def test_they_are_left_out_and_refused_when_they_are_used(self, values: pa.Array, kind: str) -> None:
        source = stream(pa.table({"title": ["a"], "value": values, "label": ["x"]}))
        table = open_table(source, "rows.parquet")
        assert (table.columns, table.unread) == (("title", "label"), {"value": kind})
        assert list(table.records()) == [(1, ("a", "x"))]
        with pytest.raises(ConfigError) as caught:
            read_rows(table, ReadingConfig(text="value"))
        assert str(caught.value) == (
            f"'rows.parquet': text = 'value' cannot be used: values of type {kind} are not supported; choose another "
            "column, or save it as text."
        )

    def test_a_name_may_hold_anything(self) -> None:
        names = ["text", "text.b", 'say "a"', "a; DROP TABLE b --", ""]
        table = open_table(stream(pa.table({name: [name] for name in names})), "rows.parquet")
        assert list(table.records()) == [(1, tuple(names))]
        assert list(table.records({"text.b"})) == [(1, ("", "text.b", "", "", ""))]

    def test_no_other_file_can_be_read(self) -> None:
        with open_parquet(stream(pa.table({"text": ["a"]}))) as file, pytest.raises(duckdb.PermissionException):
            file._database.execute("SELECT * FROM read_csv('/etc/passwd')")


class TestClassNames:
    def table(self, features: Any) -> list[str]:
        about = json.dumps({"info": {"features": features}}).encode()
        kept = pa.table({"text": ["a", "b", "c"], "label": [1, 0, -1]}).replace_schema_metadata({b"huggingface": about})
        return [fields[1] for _, fields in open_table(stream(kept), "rows.parquet").records()]

    def test_numbers_get_their_names(self) -> None:
        label = {"names": ["neg", "pos"], "_type": "ClassLabel"}
        assert self.table({"text": {"dtype": "string", "_type": "Value"}, "label": label}) == ["pos", "neg", ""]

    @each(
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
    def test_a_file_that_holds_more_than_is_read_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        source = stream(pa.table({"text": ["x" * 19_000] * 3_000, "label": ["a"] * 3_000}))
        table = open_table(source, "rows.parquet")
        with pytest.raises(TaskError, match=r"'rows.parquet' unpacks to more than 4 MB: .* SCL_MAX_FILE_MB"):
            list(table.records())

    def test_an_overlong_value_is_reported_without_being_built(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_TEXT_CHARS", "10")
        monkeypatch.setenv("SCL_MAX_LABEL_CHARS", "5")
        source = stream(pa.table({"text": ["a" * 40, "a" * 41, None, "b"], "label": ["x", "x", "y", "é" * 21]}))
        rows = [fields for _, fields in open_table(source, "rows.parquet").records()]
        assert rows == [("a" * 40, "x"), (), ("", "y"), ()]
        assert isinstance(rows[1], UnreadableRow)
        assert str(rows[1].reason.fill(where="Row 2")) == "Row 2 has a field of more than 10 characters"

    def test_long_cells_are_cut_in_the_preview_only(self) -> None:
        table = open_table(stream(pa.table({"text": ["a" * 5_000], "label": ["x"]})), "rows.parquet")
        assert table.preview == (("a" * 2_048, "x"),)
        assert list(table.records()) == [(1, ("a" * 5_000, "x"))]

    def test_more_rows_than_a_file_of_texts_could_have_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        same = pa.array(["a"] * 262_144)
        assert open_table(stream(pa.table({"text": same, "label": same})), "rows.parquet").format == "Parquet"
        source = stream(pa.table({"text": pa.array(["a"] * 262_145), "label": ["a"] * 262_145}))
        with pytest.raises(TaskError, match=r"has 262,145 rows, but at most 262,144 are read: give fewer, or raise"):
            open_table(source, "rows.parquet")

    def test_too_many_columns_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_COLUMNS", "3")
        with pytest.raises(TaskError, match="has 4 columns, but at most 3 are read"):
            open_table(stream(pa.table({name: ["x"] for name in "abcd"})), "rows.parquet")

    @pytest.mark.parametrize(
        ("column", "rows"),
        [("blob", 500), ("blobs", 200), ("long", 20_000), ("spaces", 20_000), ("distinct", 200)],
    )
    def test_a_small_file_takes_little_memory(self, column: str, rows: int, tmp_path: Path) -> None:
        """Two-megabyte values that a small file repeats, or distinct ones of half a megabyte."""
        once = pa.array([0] * rows, pa.int32())
        values = {
            "blob": lambda: pa.DictionaryArray.from_arrays(once, pa.array([b"x" * 2_000_000])),
            "blobs": lambda: pa.array([{"bytes": b"x" * 2_000_000}] * rows),
            "long": lambda: pa.DictionaryArray.from_arrays(once, pa.array(["x" * 2_000_000])),
            "spaces": lambda: pa.DictionaryArray.from_arrays(once, pa.array([" " + "x" * 2_000_000 + " "])),
            "distinct": lambda: pa.array([f"{'x' * 500_000}😀{i}" for i in range(rows)]),
        }
        name = column if column.startswith("blob") else "text"
        table = {"text": ["a", "b"] * (rows // 2), "label": ["x", "y"] * (rows // 2), name: values[column]()}
        path = tmp_path / "rows.parquet"
        parquet.write_table(pa.table(table), path, compression="zstd")
        assert path.stat().st_size < 100_000
        done = subprocess.run(
            [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
        )
        found, peak_mb, seconds = json.loads(done.stdout)
        if name == "text":
            assert f"{rows:,} are rows that do not fit the columns" in found
        else:
            assert found == {}
        assert peak_mb < (800 if column == "distinct" else 400)
        assert seconds < 10

    def test_texts_that_repeat_the_beginning_of_others_take_little_memory(self, tmp_path: Path) -> None:
        """Two hundred texts of two megabytes, of which the file holds four."""
        path, batch = tmp_path / "rows.parquet", pa.table({"text": ["x" * 2_000_000] * 50, "label": ["x", "y"] * 25})
        with parquet.ParquetWriter(
            path,
            batch.schema,
            compression="zstd",
            use_dictionary=False,
            column_encoding={"text": "DELTA_BYTE_ARRAY", "label": "PLAIN"},
        ) as writer:
            for _ in range(4):
                writer.write_batch(batch.to_batches()[0], row_group_size=1_000)
        assert path.stat().st_size < 100_000
        done = subprocess.run(
            [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
        )
        found, peak_mb, seconds = json.loads(done.stdout)
        assert "200 are rows that do not fit the columns (row 1 has a field of more than 20,000 characters)" in found
        assert peak_mb < 400
        assert seconds < 10

    def test_two_columns_of_one_name_are_told_apart(self) -> None:
        source = stream(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]))
        table = open_table(source, "rows.parquet")
        assert table.columns == ("text", "text_1")
        assert list(table.records()) == [(1, ("a", "b"))]
