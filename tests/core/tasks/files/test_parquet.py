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

import pyarrow as pa
import pytest
from pyarrow import parquet

from core.errors import TaskError
from core.tasks.files.parquet import _opened
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


def content(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    parquet.write_table(table, out, **options)
    return out.getvalue()


@each(
    ("values", "texts"),
    [
        (pa.array(["a", None, ""]), ["a", "", ""]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", "", "a"]),
        (pa.array([1, None, -3], pa.int64()), ["1", "", "-3"]),
        (pa.array([1.0, 0.5, None]), ["1", "0.5", ""]),
        (pa.array([float("nan"), 2.0, 1e300]), ["", "2", "1e+300"]),
        (pa.array([float("inf"), -0.25, 4.25], pa.float32()), ["inf", "-0.25", "4.25"]),
        (pa.array([True, False, None]), ["true", "false", ""]),
        (pa.array(["a", "b", "a"]).cast(pa.string_view()), ["a", "b", "a"]),
        (pa.array([None, None, None]), ["", "", ""]),
        (pa.array([Decimal("1.50"), None, Decimal("2.00")]), ["1.50", "", "2.00"]),
        (pa.array([datetime.date(2020, 1, 2), None, None]), ["2020-01-02", "", ""]),
    ],
)
def test_every_kind_of_column_becomes_text(values: pa.Array, texts: list[str]) -> None:
    table = open_table(content(pa.table({"text": ["x", "y", "z"], "value": values})), "rows.parquet")
    assert list(table.records()) == [(i, ("xyz"[i - 1], texts[i - 1])) for i in (1, 2, 3)]
    assert [row[1] for row in table.preview] == texts


@each("rows", [1, 2_048, 5_000])
def test_rows_are_counted_over_chunks_and_groups(rows: int) -> None:
    texts = [f"text {i % 700}" for i in range(rows)]
    table = open_table(content(pa.table({"text": texts}), row_group_size=1_000), "rows.parquet")
    assert list(table.records()) == [(i + 1, (text,)) for i, text in enumerate(texts)]


@each(
    ("values", "kind"),
    [
        (pa.array([b"abc"]), "BLOB"),
        (pa.array([["a", "é"]]), "VARCHAR[]"),
        (pa.array([{"a": 1}]), "STRUCT(a BIGINT)"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "MAP(VARCHAR, BIGINT)"),
    ],
)
def test_nested_and_binary_values_are_refused(values: pa.Array, kind: str) -> None:
    with pytest.raises(TaskError) as caught:
        open_table(content(pa.table({"title": ["a"], "value": values})), "rows.parquet")
    assert str(caught.value) == (
        f"'rows.parquet' has values of type '{kind}' in the column 'value': leave it out, or save it as text."
    )


def test_a_name_may_hold_anything() -> None:
    names = ["text", "text.b", 'say "a"', "a; DROP TABLE b --", ""]
    table = open_table(content(pa.table({name: [name] for name in names})), "rows.parquet")
    assert list(table.records()) == [(1, tuple(names))]


def test_no_other_file_can_be_read() -> None:
    with (
        pytest.raises(TaskError, match="Cannot access file"),
        _opened(content(pa.table({"text": ["a"]})), "'rows.parquet'") as database,
    ):
        database.execute("SELECT * FROM read_csv('/etc/passwd')")


class TestLimits:
    def test_a_file_that_holds_more_than_is_read_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        source = content(pa.table({"text": ["x" * 19_000] * 3_000, "label": ["a"] * 3_000}))
        table = open_table(source, "rows.parquet")
        with pytest.raises(TaskError, match=r"'rows.parquet' has more than 4 MB: .* SCL_MAX_FILE_MB"):
            list(table.records())

    def test_an_overlong_value_is_left_out_and_stays_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_TEXT_CHARS", "10")
        monkeypatch.setenv("SCL_MAX_LABEL_CHARS", "5")
        texts = ["a" * 40, " " * 50 + "a", "b", "c"]
        source = content(pa.table({"text": texts, "label": ["x", "x", "y", "é" * 21]}))
        table = open_table(source, "rows.parquet")
        long = "…" * 11
        rows = [fields for _, fields in table.records()]
        assert rows == [("a" * 40, "x"), (long, "x"), ("b", "y"), ("c", long)]
        assert read_rows(table).counts == {"long_text": 2, "long_label": 1}

    def test_more_rows_than_a_file_of_texts_could_have_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        table = open_table(content(pa.table({"text": pa.array(["a"] * 1_048_577)})), "rows.parquet")
        with pytest.raises(TaskError, match=r"has more than 4 MB: shorten the file, or raise SCL_MAX_FILE_MB"):
            next(iter(table.records()))

    @pytest.mark.parametrize(
        ("column", "rows"),
        [("long", 20_000), ("distinct", 200)],
    )
    def test_a_small_file_takes_little_memory(self, column: str, rows: int, tmp_path: Path) -> None:
        """Two-megabyte values that a small file repeats, or distinct ones of half a megabyte."""
        once = pa.array([0] * rows, pa.int32())
        values = {
            "long": lambda: pa.DictionaryArray.from_arrays(once, pa.array(["x" * 2_000_000])),
            "distinct": lambda: pa.array([f"{'x' * 500_000}😀{i}" for i in range(rows)]),
        }
        table = {"label": ["x", "y"] * (rows // 2), "text": values[column]()}
        path = tmp_path / "rows.parquet"
        parquet.write_table(pa.table(table), path, compression="zstd")
        assert path.stat().st_size < 100_000
        done = subprocess.run(
            [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
        )
        found, peak_mb, seconds = json.loads(done.stdout)
        assert f"{rows:,} are rows with an over-long text" in found
        assert peak_mb < (800 if column == "distinct" else 400)
        assert seconds < 10


class TestClassNames:
    def table(self, about: bytes) -> list[str]:
        kept = pa.table({"text": ["a", "b", "c"], "label": [1, 0, -1]}).replace_schema_metadata({b"huggingface": about})
        return [fields[1] for _, fields in open_table(content(kept), "rows.parquet").records()]

    def test_numbers_get_their_names(self) -> None:
        label = {"names": ["neg", "pos"], "_type": "ClassLabel"}
        features = {"text": {"dtype": "string", "_type": "Value"}, "label": label}
        assert self.table(json.dumps({"info": {"features": features}}).encode()) == ["pos", "neg", ""]

    @each("about", [b"[]", b'{"info": {"features": {"label": ["x"]}}}', b"{" * 50_000])
    def test_without_names_they_stay_numbers(self, about: bytes) -> None:
        assert self.table(about) == ["1", "0", "-1"]
