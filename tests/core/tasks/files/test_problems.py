"""Problems of rows: formulas, repeated rows and rows whose text has two labels, against a slow loop."""

from __future__ import annotations

import random
import time
import unicodedata

from core.tasks.files.problems import (
    PROBLEMS,
    NumberedRows,
    OptionalProblems,
    is_formula,
    optional_problems,
    runs_in_a_spreadsheet,
    score,
)
from core.tasks.rows import Rows
from tests.cases import each

MUST_DROP = {"fields", "empty_text", "empty_label", "long_text", "long_label", "bad_split", "bad_score"}
MAY_STAY = {"duplicate", "two_labels", "formula"}


def test_every_kind_says_what_it_is() -> None:
    assert {name for name, kind in PROBLEMS.items() if kind.must_drop} == MUST_DROP
    assert {name for name, kind in PROBLEMS.items() if not kind.must_drop} == MAY_STAY
    for name, kind in PROBLEMS.items():
        assert kind.name == name
        assert kind.label.startswith("rows ") or kind.label.endswith(" rows")
        assert kind.sentence.endswith(".")


@each(
    "cell",
    [
        "=SUM(A1:A3)",
        "=cmd|' /C calc'!A0",
        "=cmd|",
        "@SUM(1+1)*cmd|' /C calc'!A0",
        "+cmd|' /C calc'!A0",
        "-2+3+cmd|' /C calc'!A0",
        "-SUM(1)",
        '=HYPERLINK("http://x.y","see")',
        "= HYPERLINK(1)",
        "=A1",
        "=$B$2*3",
        "=1+1",
        "=-1",
        '="text"',
        "\t=SUM(1)",
        "  =SUM(1)",
        "=WEBSERVICE(1)",
        "+SUM(1)",
        '=(HYPERLINK("http://x.y"))',
        '=+HYPERLINK("http://x.y")',
        '+1+HYPERLINK("http://x.y")',
        '=((1+2)*HYPERLINK("http://x.y"))',
        "=-SUM(A1)",
        "=@SUM(A1)",
        "=Sheet1!A1",
        "='My sheet'!$A$1",
        "=[Book.xlsx]Sheet1!A1",
        "=a1",
        "=a1*2",
        "+hyperlink(1)",
        "@sum(1)",
        "+A1",
        "+A1*2",
        "=ZÄHLENWENN(A1)",
    ],
)
def test_formulas_are_recognised(cell: str) -> None:
    assert is_formula(cell)


@each(
    "cell",
    [
        "",
        " ",
        "- well",
        "- well, (not really)",
        "=)",
        "=(",
        "= good",
        "=D",
        "=== a line ===",
        "+1",
        "-1.5",
        "-",
        "+",
        "@someone hello (there)",
        "@someone",
        "--",
        "-> see (above)",
        "+1 for the music (and the end)",
        "a=SUM(1)",
        "=/",
        "=P",
        "- good | bad",
        "-good(ish)",
        "- well, no",
        "+1 for the cast",
        "-5",
        "+49 30 1234567",
        "@someone thanks",
        "+ item(s) to do",
        "+1 (really good(ish))",
        "+C",
        "=)) so good",
    ],
)
def test_plain_text_is_not_a_formula(cell: str) -> None:
    assert not is_formula(cell)


@each("mark", ["=", "+", "-", "@"])
@each("run", ["1", "1.", "1+", "1 ", "(", "-", " ", "a", "a.", "A1", "[", "'", '"', "\\", "a!", "a|"])
def test_no_cell_takes_long(mark: str, run: str) -> None:
    cell = mark + run * 100_000
    start = time.process_time()
    for end in ("", "x", "!", ")"):
        is_formula(cell + end)
        runs_in_a_spreadsheet(cell + end)
    assert time.process_time() - start < 1


@each(
    "cell",
    [
        "=1",
        "=)",
        "- well, no",
        "+1 for the cast",
        "@someone thanks",
        "-A1",
        "-sum(a1)",
        "+",
        "-",
        "--5",
        "-5%",
        "+49 30 1234567",
        "\t=1+1",
        "\r=1+1",
        "\n @x",
        "\xa0-1+1",
        "＝1+1",
        "－A1",
        "＋cmd|",
        "＠SUM(1)",
    ],
)
def test_what_a_spreadsheet_might_run_begins_like_a_formula(cell: str) -> None:
    assert runs_in_a_spreadsheet(cell)


@each("cell", ["", " ", "-5", "+1.5", " -1e-5 ", "\t+3", "a=1", "1-2", "'=1", '"=1', "(=1)", "→", "—"])
def test_plain_numbers_and_other_texts_do_not(cell: str) -> None:
    assert not runs_in_a_spreadsheet(cell)


def test_a_score_is_a_finite_number() -> None:
    assert [score(text) for text in ("4.0", "-1", "1e2", ".5")] == [4.0, -1.0, 100.0, 0.5]
    assert [score(text) for text in ("", "nan", "inf", "1_0", "4,5", "x")] == [None] * 6


TEXTS = ["a", "A ", "b  c", "B c", "é", "e\u0301", "É", "=SUM(1)", "d", "ｄ", "- well"]


def part(texts: list[str], labels: list[str], name: str = "a.csv", **given: object) -> NumberedRows:
    rows = Rows(tuple(texts), tuple(labels), **given)  # type: ignore[arg-type]
    return NumberedRows(name, "line", rows, range(2, 2 + len(texts)))


def same(one: str, other: str) -> bool:
    def plain(text: str) -> list[str]:
        return unicodedata.normalize("NFKC", text).casefold().split()

    return plain(one) == plain(other)


def slow(parts: list[NumberedRows]) -> list[dict[str, list[int]]]:
    """Compare every row with every other."""
    every = [(i, row) for i, one in enumerate(parts) for row in range(len(one.rows))]
    found: list[dict[str, list[int]]] = [{} for _ in parts]
    for at, (i, row) in enumerate(every):
        rows = parts[i].rows
        cells = [rows.texts[row], *([rows.seconds[row]] if rows.seconds else []), rows.labels[row]]
        alike = []
        for place, (j, other) in enumerate(every):
            theirs = parts[j].rows
            seconds = (rows.seconds or [""] * len(rows))[row], (theirs.seconds or [""] * len(theirs))[other]
            if place != at and same(rows.texts[row], theirs.texts[other]) and same(*seconds):
                alike.append((place, theirs.labels[other]))
        equal = [place for place, label in alike if equal_labels(rows, label, rows.labels[row])]
        if any(place < at for place in equal):
            found[i].setdefault("duplicate", []).append(row)
        if len(equal) < len(alike):
            found[i].setdefault("two_labels", []).append(row)
        if any(cell.startswith("=") for cell in cells):
            found[i].setdefault("formula", []).append(row)
    return found


def equal_labels(rows: Rows, one: str, other: str) -> bool:
    return one == other if rows.kind == "classes" else float(one) == float(other)


@each("files", [1, 2, 3])
def test_a_slow_loop_finds_the_same(files: int) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        pairs, kind = rng.random() < 0.5, rng.choice(["classes", "similarity"])
        labels = ["x", "y"] if kind == "classes" else ["1", "1.0", "2"]
        parts = []
        for number in range(files):
            texts = rng.choices(TEXTS, k=rng.randint(0, 20))
            seconds = tuple(rng.choices(TEXTS[:4], k=len(texts))) if pairs else None
            parts.append(part(texts, rng.choices(labels, k=len(texts)), f"{number}.csv", seconds=seconds, kind=kind))
        noted = optional_problems(parts)
        assert [one.rows for one in noted] == slow(parts)
        for one, given in zip(noted, parts, strict=True):
            assert sorted((p.kind, p.line) for p in one.problems) == sorted(
                (name, given.lines[row]) for name, rows in one.rows.items() for row in rows
            )
            assert {p.file for p in one.problems} <= {given.name}


class TestMessages:
    def messages(self, *parts: NumberedRows) -> list[list[str]]:
        return [[str(problem.message) for problem in noted.problems] for noted in optional_problems(parts)]

    def test_within_a_file_a_line_is_enough(self) -> None:
        assert self.messages(part(["a film", "A  film", "other", "=SUM(1)"], ["x", "x", "y", "y"])) == [
            [
                "Line 3 repeats line 2: 'A film'.",
                "Line 5 has a cell that a spreadsheet would run as a formula: '=SUM(1)'.",
            ]
        ]
        assert self.messages(part(["a", "a"], ["x", "y"])) == [
            [
                "Line 2 has the label 'x', but line 3 has 'y' for the same text: 'a'.",
                "Line 3 has the label 'y', but line 2 has 'x' for the same text: 'a'.",
            ]
        ]

    def test_over_files_both_are_named(self) -> None:
        train = part(["one", "Broke down.", "three"], ["x", "x", "y"], "train.csv")
        test = part(["new", "broke  down.", "broke down.", "three"], ["x", "x", "x", "x"], "test.csv")
        assert self.messages(train, test) == [
            ["'train.csv', line 4, has the label 'y', but line 5 of 'test.csv' has 'x' for the same text: 'three'."],
            [
                "'test.csv', line 3, repeats line 3 of 'train.csv': 'broke down.'.",
                "'test.csv', line 4, repeats line 3 of 'train.csv': 'broke down.'.",
                "'test.csv', line 5, has the label 'x', but line 4 of 'train.csv' has 'y' for the same text: 'three'.",
            ],
        ]

    def test_rows_and_lines_are_told_apart(self) -> None:
        train = NumberedRows("a.parquet", "row", Rows(("a", "b"), ("x", "x")), (1, 2))
        assert self.messages(train, part(["b"], ["x"], "b.csv"))[1] == [
            "'b.csv', line 2, repeats row 2 of 'a.parquet': 'b'."
        ]


def test_no_rows_have_no_problems() -> None:
    assert optional_problems([]) == []
    assert optional_problems([part([], [])]) == [OptionalProblems()]


@each("run", ["\u0301\u0327", "\U0001d165\u0301", "\uff9e\u0327", "\u0327", "猫", "😀", "\u1100\u1161"])
def test_no_text_takes_long(run: str) -> None:
    texts = [f"a{run * 10_000}b{row % 4}" for row in range(20)]
    start = time.process_time()
    (noted,) = optional_problems([part(texts, ["x"] * 20)])
    assert time.process_time() - start < 1
    assert noted.rows == {"duplicate": list(range(4, 20))}
