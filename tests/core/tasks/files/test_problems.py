"""Kinds of problems, and cells that a spreadsheet would run."""

from __future__ import annotations

import pytest

from core.tasks.files.problems import PROBLEMS, is_formula

MUST_DROP = {"fields", "empty_text", "empty_label", "long_text", "long_label", "bad_split", "bad_score"}
MAY_STAY = {"duplicate", "two_labels", "formula"}


def test_every_kind_says_what_it_is() -> None:
    assert {name for name, kind in PROBLEMS.items() if kind.must_drop} == MUST_DROP
    assert {name for name, kind in PROBLEMS.items() if not kind.must_drop} == MAY_STAY
    for name, kind in PROBLEMS.items():
        assert kind.name == name
        assert kind.label.startswith("rows ") or kind.label.endswith(" rows")
        assert kind.sentence.endswith(".")


@pytest.mark.parametrize(
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
    ],
)
def test_a_formula_is_one(cell: str) -> None:
    assert is_formula(cell)


@pytest.mark.parametrize(
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
    ],
)
def test_plain_text_is_none(cell: str) -> None:
    assert not is_formula(cell)
