"""Kinds of problems, and cells that a spreadsheet would run."""

from __future__ import annotations

import random
import time
from collections import Counter

from core.tasks.files.problems import PROBLEMS, Problem, fewer, is_formula, runs_in_a_spreadsheet, score
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
def test_a_formula_is_one(cell: str) -> None:
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
def test_plain_text_is_none(cell: str) -> None:
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


def found(kinds: list[str]) -> list[Problem]:
    return [Problem(kind, line, "", "a.csv") for line, kind in enumerate(kinds, 1)]


class TestListed:
    def test_few_are_all_listed(self) -> None:
        problems = found(["formula"] * 9_000 + ["fields"] * 1_000)
        assert fewer(problems) == tuple(problems)

    def test_every_kind_has_room(self) -> None:
        problems = found(["duplicate"] * 10_050 + ["empty_text"] * 50 + ["formula"] * 20_000 + ["fields"])
        chosen = fewer(problems)
        assert Counter(problem.kind for problem in chosen) == {
            "duplicate": 10_000 - 1_000 - 50 - 1,
            "empty_text": 50,
            "formula": 1_000,
            "fields": 1,
        }
        assert list(chosen) == sorted(chosen, key=lambda problem: problem.line)

    @each("seed", range(10))
    def test_those_that_drop_rows_come_first(self, seed: int) -> None:
        rng = random.Random(seed)
        kinds = rng.choices(list(PROBLEMS), weights=[rng.random() ** 4 for _ in PROBLEMS], k=40_000)
        chosen = fewer(found(kinds))
        counts, kept = Counter(kinds), Counter(problem.kind for problem in chosen)
        assert len(chosen) == 10_000
        assert all(kept[kind] >= min(1_000, count) for kind, count in counts.items())
        if any(kept[kind] > 1_000 for kind in MAY_STAY):
            assert all(kept[kind] == counts[kind] for kind in MUST_DROP)
        for kind, count in kept.items():
            assert [p.line for p in chosen if p.kind == kind] == [i for i, k in enumerate(kinds, 1) if k == kind][
                :count
            ]


def test_a_score_is_a_finite_number() -> None:
    assert [score(text) for text in ("4.0", "-1", "1e2", ".5")] == [4.0, -1.0, 100.0, 0.5]
    assert [score(text) for text in ("", "nan", "inf", "1_0", "4,5", "x")] == [None] * 6
