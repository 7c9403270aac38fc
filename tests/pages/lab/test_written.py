"""Settings and moved points in an address."""

from __future__ import annotations

from core.lab.choices import Move, Setting
from pages.ui.lab import moves_text, read_moves, read_setting, setting_text
from tests.cases import each


@each(
    ("setting", "text"),
    [
        (Setting(), "out_1_0.1_0.5"),
        (Setting(loss="in", weight=0.25, temperature=1.5, learning_rate=12), "in_0.25_1.5_12"),
        (Setting(loss="dscl", extra=0.3), "dscl_1_0.1_0.5_0.3"),
        (Setting(loss="rdrop", extra=0, learning_rate=5), "rdrop_1_0.1_5_0"),
    ],
)
def test_a_setting_is_read_as_it_was_written(setting: Setting, text: str) -> None:
    assert setting_text(setting) == text
    assert read_setting(text) == setting


@each(
    "text",
    [
        "",
        "out",
        "out_1_0.1",
        "out_1_0.1_0.5_0.1_2",
        "eval_1_0.1_0.5",
        "out_2_0.1_0.5",
        "out_1_0_0.5",
        "out_1_nan_0.5",
        "out_1_0.1_-1",
        "dscl_1_0.1_0.5_1",
        "out_1_0.1_0.5_0.3",
        "rdrop_1_0.1_0.5_11",
        "out_1_0.1_<b>",
        "out_1_0.1_1e999",
    ],
)
def test_nonsense_is_no_setting(text: str) -> None:
    assert read_setting(text) is None


def test_moved_points_are_read_as_they_were_written() -> None:
    moves = (Move(text=3, view=0, to=(0.5, -0.25)), Move(text=11, view=1, to=(0.0, 1.0, 2.0)))
    text = moves_text(moves)
    assert text == "3_0_0.5_-0.25~11_1_0_1_2"
    assert read_moves(text, 30) == moves
    assert moves_text(()) == ""


@each(
    "text",
    [
        "",
        "x",
        "3_0",
        "3_0_1",
        "3_2_0_1",
        "30_0_0_1",
        "-1_0_0_1",
        "3_0_0_nan",
        "3_0_1e9_0",
        "3_0_1_2_3_4",
        "~".join(["3_0_0_1"] * 61),
    ],
)
def test_nonsense_is_no_moves(text: str) -> None:
    assert read_moves(text, 30) is None
