"""Selections in the address: they are restored exactly, and invalid text selects nothing."""

from __future__ import annotations

import random

from pages.ui.explore.texts import camera_from_text, ids_as_text, ids_from_text
from tests.cases import each

KNOWN = range(2_000)


@each(
    ("ids", "text"),
    [([], ""), ([7], "7"), ([3, 4, 5, 9], "3-5.9"), ([9, 3, 3, 4], "3-4.9"), (range(2_000), "0-1999")],
)
def test_few_ids_read_as_ranges(ids: list[int], text: str) -> None:
    assert ids_as_text(ids) == text
    assert ids_from_text(text, KNOWN) == tuple(sorted(set(ids)))


@each("share", [0.01, 0.1, 0.5, 0.9])
def test_any_selection_comes_back_and_fits_an_address(share: float) -> None:
    rng = random.Random(int(100 * share))
    ids = [i for i in KNOWN if rng.random() < share]
    text = ids_as_text(ids)
    assert ids_from_text(text, KNOWN) == tuple(ids)
    assert len(text) <= 400
    assert text.replace("~", "").replace("-", "").replace(".", "").replace("_", "").isalnum()


@each("text", ["x", "1-", "-", "3-x", "~", "~%%%", "~AAAA", "9" * 400, "1..2.x", "²"])
def test_nonsense_selects_nothing(text: str) -> None:
    assert ids_from_text(text, KNOWN) == () or set(ids_from_text(text, KNOWN)) <= set(KNOWN)


def test_unknown_ids_are_left_out() -> None:
    assert ids_from_text("1-5.4000", [2, 4, 8]) == (2, 4)


def test_a_huge_range_costs_nothing() -> None:
    assert ids_from_text("5-99999999999999", [4, 5, 6]) == (5, 6)


def test_bits_that_unpack_to_much_more_than_there_is_are_cut() -> None:
    bomb = ids_as_text(range(0, 3_000_000, 2))
    assert ids_from_text(bomb, [0, 1, 2, 3]) == (0, 2)


@each("text", ["0_0_1", "-1.5_2.25_0.003", "0.6_0.35_1", "1e-7_2_3"])
def test_a_camera_comes_back_as_it_was(text: str) -> None:
    assert camera_from_text(text) == text


@each("text", ["", "_", "1_2", "1_2_3_4", "1_2_0", "1_2_-1", "1_2_inf", "nan_2_3", "a_b_c", "1_2_3~4_5_6", "9" * 9_999])
def test_what_is_no_camera_is_nothing(text: str) -> None:
    assert camera_from_text(text) is None
