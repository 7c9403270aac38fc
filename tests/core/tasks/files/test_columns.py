"""Detection of a first line with column names, and of the columns of typical files."""

from __future__ import annotations

import random
import re
import time
from functools import cache

import pytest

from core.config import ReadingConfig
from core.errors import ConfigError, TaskError
from core.tasks.files.columns import LABEL_NAMES, PAIR_NAMES, TEXT_NAMES, guess_columns, has_header
from tests.cases import each

WORDS = ["the", "film", "was", "dull", "and", "long", "but", "its", "music", "felt", "tender", "warm", "clever"]
TEXT, LABEL, WORD, NUMBER, SCORE, ID = "text", "label", "word", "number", "score", "id"
SPLIT, STAMP, NONE = "split", "stamp", "none"


@cache
def cells(kind: str, row: int) -> str:
    rng = random.Random(f"{kind} {row}")
    return {
        TEXT: " ".join(rng.choices(WORDS, k=rng.randint(5, 20))),
        LABEL: rng.choice(["good", "bad", "so-so"]),
        WORD: rng.choice(WORDS) + str(row),
        NUMBER: str(row % 2),
        SCORE: f"{rng.random() * 5:.2f}",
        ID: str(570_000 + row),
        SPLIT: rng.choice(["train", "Dev", "test"]),
        STAMP: f"2015-02-24 11:{row % 60:02d}:52",
        NONE: "",
    }[kind]


def preview(kinds: list[str], rows: int = 200) -> list[tuple[str, ...]]:
    return [tuple(cells(kind, row) for kind in kinds) for row in range(rows)]


def guess(columns: dict[str, str], given: ReadingConfig = ReadingConfig()) -> tuple[str | None, ...]:  # noqa: B008
    found = guess_columns(tuple(columns), preview(list(columns.values())), given)
    return found.text, found.text_b, found.label, found.split, found.kind


@each(
    ("columns", "expected"),
    [
        ({"Text": TEXT, "Label": LABEL}, ("Text", "", "Label", "", "classes")),
        ({"text": TEXT, "text_b": TEXT, "label": LABEL}, ("text", "text_b", "label", "", "classes")),
        ({"text_a": TEXT, "text_b": TEXT, "score": SCORE}, ("text_a", "text_b", "score", "", "similarity")),
        ({"text_a": TEXT, "text_b": TEXT, "score": NUMBER}, ("text_a", "text_b", "score", "", "similarity")),
        ({"text_a": TEXT, "text_b": TEXT, "score": LABEL}, ("text_a", "text_b", "score", "", "classes")),
        ({"text_a": TEXT, "text_b": TEXT, "label": SCORE}, ("text_a", "text_b", "label", "", "similarity")),
        ({"text": TEXT, "score": SCORE}, ("text", "", "score", "", "classes")),
        ({"문장1": TEXT, "문장2": TEXT, "점수": SCORE}, ("문장1", "문장2", "점수", "", "similarity")),
        ({"文本": TEXT, "标签": LABEL}, ("文本", "", "标签", "", "classes")),
        (
            {"Quality": NUMBER, "#1 ID": ID, "#2 ID": ID, "#1 String": TEXT, "#2 String": TEXT},
            ("#1 String", "#2 String", "Quality", "", "classes"),
        ),
        (
            {"gold_label": LABEL, "sentence1_parse": TEXT, "sentence1": TEXT, "sentence2": TEXT, "pairID": ID},
            ("sentence1", "sentence2", "gold_label", "", "classes"),
        ),
        ({"question": TEXT, "passage": TEXT, "answer": NUMBER}, ("question", "passage", "answer", "", "classes")),
        ({"question": TEXT, "answer": NUMBER}, ("question", "", "answer", "", "classes")),
        (
            {"tweet_id": ID, "airline_sentiment": LABEL, "airline": WORD, "text": TEXT, "tweet_created": STAMP},
            ("text", "", "airline_sentiment", "", "classes"),
        ),
        ({"split": SPLIT, "text": TEXT, "label": LABEL}, ("text", "", "label", "split", "classes")),
        ({"text": TEXT, "label": LABEL, "fold": NUMBER}, ("text", "", "label", "", "classes")),
        ({"column 1": NUMBER, "column 2": TEXT}, ("column 2", "", "column 1", "", "classes")),
        ({"column 1": LABEL, "column 2": WORD, "column 3": TEXT}, ("column 3", "", "column 1", "", "classes")),
        ({"a": ID, "b": STAMP, "c": TEXT, "d": LABEL}, ("c", "", "d", "", "classes")),
    ],
)
def test_columns_are_found(columns: dict[str, str], expected: tuple[str, ...]) -> None:
    assert guess(columns) == expected


@each("pair", PAIR_NAMES)
def test_pairs_are_found_in_any_order(pair: tuple[str, str]) -> None:
    first, second = pair
    assert guess({"label": LABEL, second: TEXT, first: TEXT})[:3] == (first, second, "label")


def test_a_text_and_a_label_are_found_by_their_names() -> None:
    for name in TEXT_NAMES:
        assert guess({"longer": TEXT, name: WORD, "label": LABEL})[0] == name
    for name in LABEL_NAMES:
        assert guess({"fewer": NUMBER, name: LABEL, "text": TEXT})[2] == name


def test_few_rows_are_enough() -> None:
    assert guess_columns(("text", "label"), [("a", "x")]).label == "label"
    found = guess_columns(("column 1", "column 2"), [("a good film", "x"), ("a bad film", "y")])
    assert (found.text, found.label) == ("column 1", "column 2")
    assert guess_columns(("text", "label"), []).text == "text"


def test_a_file_sorted_by_its_labels_shows_one_of_them() -> None:
    rows = [("0", cells(ID, row), "NO_QUERY", cells(TEXT, row)) for row in range(200)]
    found = guess_columns(("column 1", "column 2", "column 3", "column 4"), rows)
    assert (found.text, found.label) == ("column 4", "column 1")


@each(
    ("given", "expected"),
    [
        ({"label": "stars"}, ("review", "", "stars", "", "classes")),
        ({"text_b": "title", "label": "stars", "kind": "similarity"}, ("review", "title", "stars", "", "similarity")),
        ({"split": "part", "text_b": ""}, ("review", "", "sentiment", "part", "classes")),
        ({"text": "sentiment", "label": "review"}, ("sentiment", "", "review", "", "classes")),
    ],
)
def test_what_is_settled_stays(given: dict[str, str], expected: tuple[str, ...]) -> None:
    columns = {"title": WORD, "review": TEXT, "sentiment": LABEL, "stars": NUMBER, "part": SPLIT}
    assert guess(columns, ReadingConfig(**given)) == expected


@each(
    ("given", "part"),
    [
        ({"text": "missing"}, "text = 'missing' cannot be used: the file has the columns 'text, label'; choose one"),
        ({"text": "label", "label": "label"}, "label = 'label' cannot be used: this is already the text column"),
        ({"text_b": "", "kind": "similarity"}, "kind = 'similarity' cannot be used"),
        ({"kind": "similarity"}, "kind = 'similarity' cannot be used"),
    ],
)
def test_a_column_that_cannot_be_is_refused(given: dict[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        guess({"text": TEXT, "label": LABEL}, ReadingConfig(**given))


@each(
    ("columns", "sentence"),
    [
        ({"one": TEXT, "two": TEXT}, "No label column was found (columns: 'one, two'). Choose the label column"),
        ({"a": ID, "label": LABEL}, "No text column was found (columns: 'a, label'). Choose the text column"),
    ],
)
def test_an_unrecognised_column_raises_and_asks_for_it(columns: dict[str, str], sentence: str) -> None:
    with pytest.raises(TaskError, match=re.escape(sentence)):
        guess(columns)


@each(
    "rows",
    [
        [("text", "label"), ("a film", "good")],
        [("text", "label")],
        [("", "review", "stars"), ("0", "a film", "5"), ("1", "no film", "4")],
        [("v1", "v2", "", ""), ("ham", "see you later then, at the film", "", ""), ("spam", "buy " * 20, "", "")],
        [("문장", "라벨"), ("영화", "1")],
        [("Text DE", "Sorte"), *((f"Das ist der Satz Nummer {i}, und er ist lang.", "gut") for i in range(9))],
    ],
)
def test_names_are_a_header(rows: list[tuple[str, ...]]) -> None:
    assert has_header(rows)


@each(
    "rows",
    [
        [("3", "Wall St. Bears", "Short-sellers are back"), ("4", "Carlyle", "A firm")],
        [("A film that I liked a lot.", "1"), ("Not so good.", "0")],
        [("ham", "Go until jurong point"), ("spam", "Free entry"), ("ham", "Ok")],
        [("good film", "positive"), ("bad film", "negative"), ("fine film", "positive")],
        [("1.5", "2"), ("1", "2")],
        [("only one row", "x")],
        [("a film", "good"), ("no film", "bad")],
        [("foo", "bar"), ("ja", "5"), ("na", "five"), ("no", "3")],
        [()],
    ],
)
def test_values_are_not_a_header(rows: list[tuple[str, ...]]) -> None:
    assert not has_header(rows)


# The values of a column, some of them missing.
NUMBERS = ["5 |3", "NA|-1.5|nan", "-1,5||+2,25", "1,234.50|null", "12%|3%", "1e-5|None|.5", "\u22123|4"]
TIMES = ["10:30|23:59:59", "2020-01-02||2021-12-31", "2020-01-02 10:30|2020-01-02T10:30:00Z", "1/2/2020|12/31/2021"]


@each("values", [*NUMBERS, *TIMES])
def test_names_above_numbers_and_dates_are_a_header(values: str) -> None:
    rows = [(f"ja{i}", value) for i, value in enumerate(values.split("|"))]
    assert has_header([("foo", "bar"), *rows])
    for start in range(len(rows)):
        assert not has_header(rows[start:] + rows[:start])


def test_long_cells_take_no_time() -> None:
    start = time.process_time()
    for cell in ("1" * 10**6, "1," * 5 * 10**5, "1 " * 5 * 10**5, "1-1-" * 10**5):
        for end in ("", "x"):
            has_header([("foo", "bar"), ("a", cell + end), ("b", cell + end)])
    assert time.process_time() - start < 2
