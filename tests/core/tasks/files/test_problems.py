"""Problems of rows: their kinds, formulas and scores."""

from __future__ import annotations

import time

from core.tasks.files.problems import is_formula, score
from core.tasks.listing import runs_in_a_spreadsheet
from tests.cases import each

FORMULAS = [
    *("=SUM(A1:A3)", "\t= HYPERLINK(1)", '=(HYPERLINK("http://x.y"))', "=-SUM(A1)", "=@SUM(A1)", "=ZÄHLENWENN(A1)"),
    *("=cmd|' /C calc'!A0", "@SUM(1+1)*cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "+cmd|' /C calc'!A0"),
    *("=A1", "=a1*2", "=$B$2*3", "=Sheet1!A1", "='My sheet'!$A$1", "=[Book.xlsx]Sheet1!A1", "=1+1", "=-1", '="text"'),
    *("-SUM(1)", "+SUM(1)", '+1+HYPERLINK("http://x.y")'),
]
TEXTS = [
    *("", "- well", "- well, (not really)", "=)", "=(", "= good", "=D", "=P", "=/", "=)) so good", "=== a line ==="),
    *("+1", "-1.5", "-", "+", "--", "-> see (above)", "a=SUM(1)", "- good | bad", "-good(ish)", "+ item(s) to do"),
    *("@someone hello (there)", "@someone", "+1 for the music (and the end)", "+1 (really good(ish))", "+49 30 12345"),
]


def test_formulas_are_recognised_and_texts_are_not() -> None:
    assert [cell for cell in FORMULAS if not is_formula(cell)] == []
    assert [cell for cell in TEXTS if is_formula(cell)] == []


@each("mark", ["=", "+", "-", "@"])
@each("run", ["1", "1.", "1+", "1 ", "(", "-", " ", "a", "a.", "A1", "[", "'", '"', "\\", "a!", "a|"])
def test_no_cell_takes_long(mark: str, run: str) -> None:
    cell = mark + run * 100_000
    start = time.process_time()
    for end in ("", "x", "!", ")"):
        is_formula(cell + end)
        runs_in_a_spreadsheet(cell + end)
    assert time.process_time() - start < 1


RUN = ["=1", "- well, no", "@someone thanks", "-A1", "+", "--5", "-5%", "\t=1+1", "\n @x", "\xa0-1+1", "＝1+1", "－A1"]
PLAIN = ["", " ", "-5", "+1.5", " -1e-5 ", "\t+3", "a=1", "1-2", "'=1", '"=1', "(=1)", "→", "—"]


def test_a_spreadsheet_might_run_what_begins_like_a_formula_and_is_no_number() -> None:
    assert all(map(runs_in_a_spreadsheet, RUN))
    assert not any(map(runs_in_a_spreadsheet, PLAIN))


def test_a_score_is_a_finite_number() -> None:
    assert [score(text) for text in ("4.0", "-1", "1e2", ".5")] == [4.0, -1.0, 100.0, 0.5]
    assert [score(text) for text in ("", "nan", "inf", "1_0", "4,5", "x")] == [None] * 6
