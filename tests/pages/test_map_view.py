"""Synchronisation of page and browser, without a browser."""

from __future__ import annotations

from typing import Any

from pages.ui.map_view import FIELDS, _reports, _Settled
from tests.cases import each


def reported(number: int, *ids: int) -> dict[str, Any]:
    return {"number": number, "value": ids}


def test_the_visitor_counts_until_the_page_asks_for_something_new() -> None:
    settled = _Settled()
    assert settled.settle((5,), None) == (5,)
    assert settled.settle((5,), reported(1, 7)) == (7,)
    # The page returns the reported value through its address.
    assert settled.settle((7,), reported(1, 7)) == (7,)
    assert settled.number == 1
    # The page sets a new value, and an old report does not restore the old one.
    assert settled.settle((1, 2), reported(1, 7)) == (1, 2)
    assert settled.number == 2
    assert settled.settle((1, 2), reported(2, 9)) == (9,)


def test_a_second_click_before_the_page_passed_the_first_one_back_is_not_lost() -> None:
    settled = _Settled()
    settled.settle((), None)
    assert settled.settle((), reported(1, 3)) == (3,)
    assert settled.settle((3,), reported(2, 4)) == (4,)
    assert settled.number == 1


def test_passing_back_the_newest_frame_asks_for_nothing() -> None:
    settled = _Settled()
    assert settled.settle(None, None) is None
    settled.answered = 50
    assert settled.settle(50, None) is None
    assert settled.settle(50, {"number": 1, "value": 40}) == 40
    assert settled.number == 1


def test_the_page_can_ask_again_for_what_it_asked_for_before() -> None:
    settled = _Settled()
    settled.settle((5,), None)
    settled.settle((5,), reported(1, 7))
    settled.settle((7,), reported(1, 7))
    assert settled.settle((5,), reported(1, 7)) == (5,)
    assert settled.number == 2


def test_a_page_that_never_passes_anything_back_keeps_the_visitors_value() -> None:
    settled = _Settled()
    settled.settle((), None)
    assert [settled.settle((), reported(n, n)) for n in (1, 2, 2)] == [(1,), (2,), (2,)]


@each(
    "held",
    [
        None,
        {},
        {"reports": 3},
        {"reports": {"selected": 3}},
        {"reports": {"selected": {"number": "x", "value": []}}},
        {"reports": {"selected": {"number": 1, "value": ["<b>"]}}},
        {"reports": {"selected": {"number": 1, "value": [10**9]}}},
        {"reports": {"selected": {"number": 1, "value": [-1]}}},
        {"reports": {"view": {"number": 1, "value": 4}, "frame": {"number": 1, "value": "4"}}},
        {"reports": {"other": {"number": 1, "value": 4}}},
    ],
)
def test_nonsense_from_a_browser_is_no_report(held: Any) -> None:
    assert _reports(held) == {}


def test_reports_of_every_field_are_read() -> None:
    values = {"selected": [3, 4], "frame": 20, "clicked": 4, "view": "1_2_3"}
    reports = _reports({"reports": {name: {"number": 9, "value": values[name]} for name in FIELDS}})
    assert {name: report["value"] for name, report in reports.items()} == values | {"selected": (3, 4)}
