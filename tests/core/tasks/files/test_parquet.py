"""Parquet files: values as the text that a person would write."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from core.errors import TaskError
from core.tasks.files.delimited import Unread
from core.tasks.files.parquet import BATCH_ROWS, UNPACKED_FACTOR
from core.tasks.files.row_groups import EXPANDING_BATCH_ROWS, stretches
from core.tasks.files.tables import in_words, open_table
from tests.cases import each, slow_but

ROOT = Path(__file__).resolve().parents[4]
# The system's own peak counts what the parent had before the new program began, where there is a better one.
READER = """
import json, re, resource, sys, time
from pathlib import Path
from core.errors import TaskError
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
        (pa.array([b"abc", None, b""]), ["(binary values)"] * 3),
        (pa.array([b"abc", b"d", b"abc"]).dictionary_encode(), ["(binary values)"] * 3),
        (pa.array([b"abc", None, b"def"], pa.binary(3)), ["(binary values)"] * 3),
        (pa.array([b"abc", None, b""], pa.large_binary()), ["(binary values)"] * 3),
        (pa.array([["a", "é"], [], None]), ["(nested values)"] * 3),
        (pa.array([{"a": 1}, {"a": None}, None]), ["(nested values)"] * 3),
        (pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())), ["(nested values)"] * 3),
        (pa.array([None, None, None]), ["", "", ""]),
        (pa.array([Decimal("1.50"), None, Decimal("2.00")]), ["1.50", "", "2.00"]),
        (pa.array([datetime.date(2020, 1, 2), None, None]), ["2020-01-02", "", ""]),
    ],
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


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 1100])
@pytest.mark.parametrize("group", [100, 10_000])
@pytest.mark.parametrize("piece", [20, 2**24])
def test_rows_are_counted_over_batches_groups_and_pieces(
    rows: int, group: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.tasks.files.parquet.BATCH_ROWS", 256)
    monkeypatch.setattr("core.tasks.files.parquet.PIECE_BYTES", piece)
    texts = [f"text {i % 700}" for i in range(rows)]
    table = open_table(stream(pa.table({"text": texts}), row_group_size=group), "rows.parquet")
    assert list(table.records()) == [(i + 1, (text,)) for i, text in enumerate(texts)]


def test_columns_that_are_not_used_are_left_empty() -> None:
    source = stream(pa.table({"id": [1, 2], "text": ["a", "b"], "vector": [[0.0] * 100] * 2, "label": [0, 1]}))
    table = open_table(source, "rows.parquet")
    assert list(table.records({"text", "label"})) == [(1, ("", "a", "", "0")), (2, ("", "b", "", "1"))]


class TestEncodings:
    """Every way in which texts are stored."""

    TEXTS = ("", "a", "ab", 'abc, "d"', "abd", "naïve 猫 🐈", "x" * 3_000)
    ENCODINGS = ("dictionary", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")

    @staticmethod
    def written(values: pa.Array, encoding: str, **options: Any) -> io.BytesIO:
        table = pa.table({"id": list(range(len(values))), "text": values})
        if encoding != "dictionary":
            options |= {"use_dictionary": False, "column_encoding": {"text": encoding}}
        return stream(table, **options)

    @pytest.mark.parametrize(
        "kind",
        [
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int32(), pa.string()),
            pa.dictionary(pa.int8(), pa.large_string()),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("encoding", ENCODINGS)
    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    def test_texts_are_read_in_every_encoding(
        self, kind: pa.DataType, encoding: str, version: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.tasks.files.parquet.PIECE_BYTES", 20_000)
        texts = [self.TEXTS[(i * i) % 7] if i % 5 else None for i in range(1_000)]
        plain = pa.array(texts)
        values = (plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain).cast(kind)
        for compression in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
            source = self.written(
                values, encoding, compression=compression, row_group_size=300, data_page_version=version
            )
            table = open_table(source, "rows.parquet")
            assert [fields[1] for _, fields in table.records()] == [text or "" for text in texts]
            assert [row[1] for row in table.preview] == [(text or "")[:2_048] for text in texts[:200]]
            assert [fields for _, fields in table.records({"text"})] == [("", text or "") for text in texts]

    @each("store_schema", [True, False])
    def test_a_dictionary_that_outgrows_its_page_goes_on_plain(self, store_schema: bool) -> None:
        texts = [f"text {i}" for i in range(5_000)]
        source = self.written(
            pa.array(texts),
            "dictionary",
            dictionary_pagesize_limit=1_000,
            store_schema=store_schema,
            row_group_size=900,
        )
        assert [fields[1] for _, fields in open_table(source, "rows.parquet").records()] == texts

    @each("encoding", ENCODINGS)
    def test_other_columns_keep_their_values(self, encoding: str) -> None:
        """Where the Arrow schema is set aside, for dictionaries that are stored in another encoding."""
        options = {} if encoding == "dictionary" else {"use_dictionary": False, "column_encoding": {"text": encoding}}
        columns = {
            "text": pa.array(["a", "b", "a"]).dictionary_encode(),
            "large": pa.array(["x", None, "z"], pa.large_string()),
            "number": pa.array([1, None, 3], pa.int8()),
            "half": pa.array([0.5, 2.0, None], pa.float32()),
            "day": pa.array([datetime.date(2020, 1, 2), None, None]),
            "list": pa.array([["a"], [], None]),
        }
        about = json.dumps({"info": {"features": {"number": {"names": ["n", "p"], "_type": "ClassLabel"}}}}).encode()
        kept = pa.table(columns).replace_schema_metadata({b"huggingface": about})
        assert [fields for _, fields in open_table(stream(kept, **options), "rows.parquet").records()] == [
            ("a", "x", "p", "0.5", "2020-01-02", "(nested values)"),
            ("b", "", "", "2", "", "(nested values)"),
            ("a", "z", "", "", "", "(nested values)"),
        ]

    def test_row_groups_are_read_as_they_are_stored(self) -> None:
        stored = [
            {"text": ("RLE", "PLAIN", "RLE_DICTIONARY"), "label": ("RLE", "PLAIN")},
            {"text": ("RLE", "PLAIN"), "label": ("PLAIN_DICTIONARY", "BIT_PACKED")},
            {"text": ("RLE", "DELTA_LENGTH_BYTE_ARRAY"), "label": ("RLE", "PLAIN")},
            {"text": ("RLE", "DELTA_BYTE_ARRAY"), "label": ("RLE", "PLAIN")},
            {"text": ("PLAIN", "RLE_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY"), "label": ("RLE", "PLAIN")},
            {"text": ("RLE", "PLAIN"), "label": ("RLE", "PLAIN")},
        ]
        paths = ["id", "text", "label"]

        def group(number: int) -> SimpleNamespace:
            return SimpleNamespace(column=lambda i: SimpleNamespace(encodings=stored[number][paths[i]]))

        schema = SimpleNamespace(column=lambda i: SimpleNamespace(path=paths[i]))
        about = SimpleNamespace(schema=schema, num_columns=3, num_row_groups=len(stored), row_group=group)
        found = list(stretches(SimpleNamespace(metadata=about), {"text", "label"}, BATCH_ROWS))
        assert found == [
            ([0, 1], ["text", "label"], BATCH_ROWS),
            ([2], ["label"], BATCH_ROWS),
            ([3, 4], ["label"], EXPANDING_BATCH_ROWS),
            ([5], ["text", "label"], BATCH_ROWS),
        ]

    def test_what_arrow_cannot_read_is_not_called_damaged(self) -> None:
        with pytest.raises(TaskError) as caught, in_words("'rows.parquet'"):
            raise OSError("Not yet implemented: Unsupported encoding.")
        assert str(caught.value) == (
            "'rows.parquet' is stored in a way that is not read (Not yet implemented: Unsupported encoding): "
            "write it again in an encoding that every reader knows, such as PLAIN."
        )


class TestColumnsThatAreNotRead:
    def test_they_are_refused_when_they_are_used(self) -> None:
        table = open_table(stream(pa.table({"text": [b"a"], "label": [[1]], "title": ["a"]})), "rows.parquet")
        assert list(table.records({"title"})) == [(1, ("", "", "a"))]
        for used, kind in (("text", "binary"), ("label", "nested")):
            with pytest.raises(TaskError) as caught:
                list(table.records({"title", used}))
            assert str(caught.value) == (
                f"'rows.parquet' has {kind} values in the column '{used}', which are not read: "
                "choose another column, or save it as text."
            )

    def test_a_column_that_arrow_would_read_along_with_them_is_none_either(self) -> None:
        source = stream(pa.table({"text": [{"x": b"a"}], "text.x": ["a"], "label": ["b"]}))
        assert open_table(source, "rows.parquet").preview == (("(nested values)", "(other values)", "b"),)

    def test_a_name_with_a_point_is_a_name(self) -> None:
        table = open_table(stream(pa.table({"text": ["a"], "text.b": ["b"], "": ["c"]})), "rows.parquet")
        assert list(table.records()) == [(1, ("a", "b", "c"))]
        assert list(table.records({"text"})) == [(1, ("a", "", ""))]


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

    def test_a_value_that_is_too_long_is_told_and_not_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("core.tasks.files.parquet.FIELD_MAX_CHARS", 10)
        source = stream(pa.table({"text": ["a" * 40, "a" * 41, None, "b"], "label": ["x", "x", "y", "é" * 21]}))
        rows = [fields for _, fields in open_table(source, "rows.parquet").records()]
        assert rows == [("a" * 40, "x"), (), ("", "y"), ()]
        assert isinstance(rows[1], Unread)
        assert str(rows[1].reason.fill(where="Row 2")) == "Row 2 has a field of more than 16,777,216 characters"

    def test_long_cells_are_cut_in_the_preview_only(self) -> None:
        table = open_table(stream(pa.table({"text": ["a" * 5_000], "label": ["x"]})), "rows.parquet")
        assert table.preview == (("a" * 2_048, "x"),)
        assert list(table.records()) == [(1, ("a" * 5_000, "x"))]

    def test_more_rows_than_a_file_of_texts_could_have_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_FILE_MB", "1")
        same = pa.array(["a"] * 262_144)
        assert open_table(stream(pa.table({"text": same, "label": same})), "rows.parquet").format == "Parquet"
        source = stream(pa.table({"text": pa.array(["a"] * 262_145), "label": ["a"] * 262_145}))
        with pytest.raises(TaskError, match=r"has 262,145 rows and at most 262,144 are read: give fewer, or raise"):
            open_table(source, "rows.parquet")

    def test_too_many_columns_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCL_MAX_COLUMNS", "3")
        with pytest.raises(TaskError, match="has 4 columns and at most 3 are read"):
            open_table(stream(pa.table({name: ["x"] for name in "abcd"})), "rows.parquet")

    @pytest.mark.parametrize(
        ("column", "rows"),
        slow_but(
            [("blob", 500)],
            [("blob", 500), ("blobs", 200), ("long", 20_000), ("spaces", 20_000), ("distinct", 200)],
        ),
    )
    def test_a_small_file_takes_little_memory(self, column: str, rows: int, tmp_path: Path) -> None:
        """Values of two megabytes that a file of some kilobytes repeats; or different ones of half a megabyte."""
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
            assert f"{rows:,} are rows with an over-long text" in found
        else:
            assert found == {"duplicate": rows - 2}
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
        assert "200 are rows with an over-long text" in found
        assert peak_mb < 400
        assert seconds < 10

    def test_two_columns_of_one_name_are_refused(self) -> None:
        source = stream(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]))
        with pytest.raises(TaskError, match="more than one column 'text'"):
            open_table(source, "rows.parquet")
