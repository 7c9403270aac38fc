"""A task's rows as one list, and as files that can be read back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from core.tasks.dataset import Split, TaskData
from core.tasks.files.reading import read_file
from core.tasks.listing import csv_file, jsonl_file, listing_of, listing_of_scores
from core.tasks.rows import Rows

DATA = TaskData(
    "t",
    ("no", "yes"),
    Split(("a, b", "=cmd|' /C calc'!A0", 'say "hi"\nthere'), (1, 0, 1)),
    Split(("c",), (0,)),
    Split(("d", "e"), (1, 1)),
)


def test_all_splits_are_listed_in_order() -> None:
    listing = listing_of(DATA)
    assert listing.texts == ("a, b", "=cmd|' /C calc'!A0", 'say "hi"\nthere', "c", "d", "e")
    assert listing.splits == ("train",) * 3 + ("validation",) + ("test",) * 2
    assert listing.labels == ("yes", "no", "yes", "no", "yes", "yes")
    assert listing.split_names == ["train", "validation", "test"]
    assert [listing.counts(split) for split in listing.split_names] == [[1, 2], [1, 0], [0, 2]]
    assert not listing.pairs


def test_scores_have_no_classes() -> None:
    listing = listing_of_scores(Rows(("a",), ("3.8",), ("b",), kind="similarity"))
    assert (listing.classes, listing.splits, listing.pairs) == ((), ("all",), True)
    assert listing.records([0]) == [{"text": "a", "text_b": "b", "score": "3.8"}]


def test_a_csv_file_is_safe_in_a_spreadsheet() -> None:
    listing = listing_of(DATA)
    rows = list(csv.reader(io.StringIO(csv_file(listing.records(range(6))).decode("utf-8-sig"), newline="")))
    assert rows[0] == ["text", "label", "split"]
    assert rows[2][0] == "'=cmd|' /C calc'!A0"
    assert rows[3] == ['say "hi"\nthere', "yes", "train"]
    assert csv_file([]).decode("utf-8-sig") == ""


def test_a_jsonl_file_reads_back_exactly(tmp_path: Path) -> None:
    records = listing_of(DATA).records(range(6))
    assert [json.loads(line) for line in jsonl_file(records).decode().splitlines()] == records
    path = tmp_path / "t.jsonl"
    path.write_bytes(jsonl_file(records))
    rows = read_file(path).rows
    assert rows.texts == listing_of(DATA).texts
    assert rows.splits == listing_of(DATA).splits
