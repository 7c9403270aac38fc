"""Quick checks of the bundled tasks. `make data-check` runs the rest."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

from tests.cases import each

ASSETS = Path(__file__).resolve().parents[3] / "assets" / "tasks"
SENTIMENT = ("negative", "positive")

# Task: training rows, test rows, labels.
PROMISED: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "acceptability": (300, 150, ("acceptable", "unacceptable")),
    "film_reviews": (1200, 400, SENTIMENT),
    "long_film_reviews": (100, 200, SENTIMENT),
    "news_topics": (400, 200, ("business", "science", "sport", "world")),
    "nli": (600, 240, ("contradiction", "entailment", "neutral")),
    "paraphrase": (300, 150, ("different", "paraphrase")),
    "product_reviews": (150, 150, SENTIMENT),
    "question_types": (300, 180, ("abbreviation", "description", "entity", "number", "person", "place")),
    "venue_reviews": (150, 150, SENTIMENT),
}
PAIRS = ("nli", "paraphrase")

Row = dict[str, str]


def read(task: str, split: str) -> list[Row]:
    with (ASSETS / task / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def both(task: str) -> list[Row]:
    return read(task, "train") + read(task, "test")


def texts(row: Row) -> list[str]:
    return [row[column] for column in ("text", "text_b") if column in row]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower().replace("’", "'"))


def test_every_folder_is_promised_something() -> None:
    assert sorted(folder.name for folder in ASSETS.iterdir() if folder.is_dir()) == sorted(PROMISED)


@each("split", ["train", "test"])
@each("task", PROMISED)
def test_a_file_is_plain_utf_8_csv(task: str, split: str) -> None:
    raw = (ASSETS / task / f"{split}.csv").read_bytes()
    header = b"text,text_b,label\n" if task in PAIRS else b"text,label\n"
    assert raw.startswith(header)
    assert raw.endswith(b"\n")
    assert b"\r" not in raw
    columns = header.decode().strip().split(",")
    for row in read(task, split):
        assert list(row) == columns
        for cell in row.values():
            assert cell
            assert cell == cell.strip()
            assert "\n" not in cell


@each("task", PROMISED)
def test_counts_are_as_promised_and_classes_are_of_equal_size(task: str) -> None:
    train, test, labels = PROMISED[task]
    for split, rows in (("train", train), ("test", test)):
        counts = Counter(row["label"] for row in read(task, split))
        assert counts == dict.fromkeys(labels, rows // len(labels)), split


@each("task", PROMISED)
def test_no_text_is_repeated_except_a_premise(task: str) -> None:
    counts = Counter(" ".join(words(text)) for row in both(task) for text in texts(row)[task == "nli" :])
    assert [text for text, times in counts.items() if times > 1] == []


def test_a_premise_has_each_label_once_and_is_in_one_file() -> None:
    train, test = read("nli", "train"), read("nli", "test")
    labels: dict[str, list[str]] = defaultdict(list)
    for row in train + test:
        labels[row["text"]].append(row["label"])
    assert {tuple(sorted(found)) for found in labels.values()} == {PROMISED["nli"][2]}
    assert {row["text"] for row in train}.isdisjoint(row["text"] for row in test)


def test_no_text_is_in_two_tasks() -> None:
    tasks: dict[str, set[str]] = defaultdict(set)
    for task in PROMISED:
        for row in both(task):
            for text in texts(row):
                tasks[" ".join(words(text))].add(task)
    assert {text: found for text, found in tasks.items() if len(found) > 1} == {}


def test_no_run_of_six_words_is_in_more_than_six_rows_of_all_files() -> None:
    """A premise counts once, because it is in three rows by design."""
    rows: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for task in PROMISED:
        for number, row in enumerate(both(task)):
            place = row["text"] if task == "nli" else f"{task} {number}"
            for found in map(words, texts(row)):
                for start in range(len(found) - 5):
                    rows[tuple(found[start : start + 6])].add(place)
    assert {run: len(places) for run, places in rows.items() if len(places) > 6} == {}


def test_long_reviews_have_90_to_220_words() -> None:
    lengths = [len(row["text"].split()) for row in both("long_film_reviews")]
    assert min(lengths) >= 90
    assert max(lengths) <= 220


@each("task", PROMISED)
def test_a_data_card_tells_how_labels_counts_figures_and_licence(task: str) -> None:
    train, test, labels = PROMISED[task]
    card = (ASSETS / task / "README.md").read_text(encoding="utf-8")
    for heading in ("Labels", "How it was made", "Measured", "Known limits", "Licence"):
        assert f"\n## {heading}\n" in card
    assert "synthetic" in card
    assert "written for this project" in card
    assert "CC0 1.0" in card
    for label in labels:
        assert f"\n- `{label}`: " in card
    measured = card.partition("<!-- measured: begin -->")[2].partition("<!-- measured: end -->")[0]
    for split, rows in (("train", train), ("test", test)):
        for label in labels:
            assert f"| `{split}.csv` | {label} | {rows // len(labels)} |" in measured
    for model in ("majority class", "length only", "bag of words", "linear probe"):
        assert f"\n| {model} | " in measured
