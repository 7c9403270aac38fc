"""Detection of a first line with column names."""

from __future__ import annotations

import time

from core.tasks.files.columns import has_header
from tests.cases import each


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
VALUES = [
    "5 |3",
    "NA|-1.5|nan",
    "-1,5||+2,25",
    "1,234.50|null",
    "12%|3%",
    "1e-5|None|.5",
    "\u22123|4",
    "10:30|23:59:59",
]
DATES = [
    "2020-01-02||2021-12-31",
    "02.01.2020||31.12.2021",
    "2020-01-02 10:30|2020-01-02T10:30:00Z",
    "1/2/2020|12/31/2021",
]


@each("values", [*VALUES, *DATES])
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
