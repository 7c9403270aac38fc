"""Detection of a first line with column names."""

from __future__ import annotations

import time

from core.tasks.files.columns import has_header
from tests.cases import each


class TestNames:
    @each(
        "rows",
        [
            [("text", "label"), ("a film", "good")],
            [("text", "label")],
            [("", "review", "stars"), ("0", "a film", "5"), ("1", "no film", "4")],
            [("v1", "v2", "", ""), ("ham", "see you later then, at the film", "", ""), ("spam", "buy " * 20, "", "")],
            [("foo", "bar"), ("a film that is long enough", "1"), ("another", "0")],
            [("문장", "라벨"), ("영화", "1")],
            [("id", "document", "label"), ("1", "a film", "0")],
        ],
    )
    def test_names_are_a_header(self, rows: list[tuple[str, ...]]) -> None:
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
            [()],
            [],
        ],
    )
    def test_values_are_not_a_header(self, rows: list[tuple[str, ...]]) -> None:
        assert not has_header(rows)


def rows_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("|")) for line in text.split("/")]


class TestGaps:
    """Headers above numbers and dates with missing values, and the same rows without a header."""

    HEADERS = (
        "satz_de|wert/ja|5/na|/no|3",
        "satz_de|wert/ja|/na|5/no|3",
        "wert|satz_de/|ja/5|na/3|no",
        "foo|bar|baz/ja|1|/na||2/no||/doch|3|4",
        "foo|bar/ja|NA/na|-1.5/no|nan/no2|2",
        "foo|bar/ja|-1,5/na|/no|+2,25/so|0",
        "foo|bar/ja|1.234,50/na|-/no|12",
        "foo|bar/ja|1,234.50/na|null/no|12",
        "foo|bar/ja|12 %/na|3%".replace("12 %", "12%"),
        "foo|bar/ja|1e-5/na|None/no|.5",
        "foo|bar/ja|2020-01-02/na|/no|2021-12-31",
        "foo|bar/ja|02.01.2020/na|/no|31.12.2021",
        "foo|bar/ja|2020-01-02 10:30/na|2020-01-02T10:30:00Z/no|",
        "foo|bar/ja|10:30/na|/no|23:59:59",
        "foo|bar/ja|\u22123/na|4",
        "foo|bar|baz/a film|p|2/b film|q|/c film|p|7",
    )

    @each("text", HEADERS)
    def test_names_above_values_are_a_header(self, text: str) -> None:
        assert has_header(rows_of(text))

    @each("text", HEADERS)
    def test_rows_without_a_header_have_none(self, text: str) -> None:
        rows = rows_of(text)[1:]
        for start in range(len(rows)):
            assert not has_header(rows[start:] + rows[:start])

    def test_slashes_in_dates(self) -> None:
        rows = [("ja", "1/2/2020"), ("na", ""), ("no", "12/31/2021")]
        assert has_header([("foo", "bar"), *rows])
        assert not has_header(rows)

    def test_the_numbers_of_rows_need_no_name(self) -> None:
        rows = [("0", "ja"), ("1", "na"), ("2", "no")]
        assert has_header([("", "foo"), *rows])
        assert not has_header([("", "ja"), ("7", "na"), ("3", "no")])

    def test_words_among_the_values_say_nothing(self) -> None:
        assert not has_header([("foo", "bar"), ("ja", "5"), ("na", "five"), ("no", "3")])


class TestTexts:
    """Headers above columns of texts."""

    @each("names", [("satz", "sorte"), ("Kommentar_1", "art"), ("v1", "v2"), ("Text DE", "Klasse")])
    def test_short_names_above_long_texts_are_a_header(self, names: tuple[str, str]) -> None:
        rows = [
            (f"Das ist der Satz Nummer {i}, und er ist lang genug.", "gut" if i % 3 else "schlecht") for i in range(9)
        ]
        assert has_header([names, *rows])
        assert not has_header(rows)

    def test_short_texts_are_no_evidence(self) -> None:
        rows = [("ja", "gut"), ("nein", "schlecht"), ("doch", "gut")]
        assert not has_header(rows)


def test_long_cells_take_no_time() -> None:
    start = time.process_time()
    for cell in ("1" * 10**6, "1," * 5 * 10**5, "1.1" * 3 * 10**5, "1 " * 5 * 10**5, "1,111" * 10**5, "1-1-" * 10**5):
        for end in ("", "x"):
            has_header([("foo", "bar"), ("a", cell + end), ("b", cell + end)])
    assert time.process_time() - start < 2
