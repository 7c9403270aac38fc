"""The polling interval of pages on a live run, for many visitors."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pages.ui.waiting import BETWEEN_LOOKS_S, PollSchedule

NEAR = 1e-9


def test_a_single_page_polls_at_the_interval_it_asks_for() -> None:
    turns, now = PollSchedule(), 0.0
    for _ in range(5):
        assert turns.next_s(1.0, now) == pytest.approx(1.0)
        now += 1.0


def test_many_pages_take_turns_and_each_has_as_many() -> None:
    turns, count, after_s = PollSchedule(), 50, 1.0
    # All at once, as when a teacher asks a class to open a page.
    due = {page: turns.next_s(after_s, 0.0) for page in range(count)}
    looks: list[tuple[float, int]] = []
    while len(looks) < 10 * count:
        page = min(due, key=due.__getitem__)
        now = due[page]
        looks.append((now, page))
        due[page] = now + turns.next_s(after_s, now)
    assert min(after[0] - before[0] for before, after in pairwise(looks)) >= BETWEEN_LOOKS_S - NEAR
    assert looks[-1][0] - looks[0][0] == pytest.approx((len(looks) - 1) * BETWEEN_LOOKS_S, rel=0.05)
    assert {sum(page == one for _, page in looks) for one in range(count)} == {10}


def test_the_slower_the_machine_the_rarer_the_polls() -> None:
    """Fifty pages whose polls cost 0.1 s of a core each take a third of it."""
    turns, count, cost_s = PollSchedule(), 50, 0.1
    due = {page: turns.next_s(1.0, 0.0, cost_s) for page in range(count)}
    looks: list[float] = []
    while len(looks) < 10 * count:
        page = min(due, key=due.__getitem__)
        looks.append(due[page])
        due[page] += turns.next_s(1.0, due[page], cost_s)
    last = looks[-3 * count :]
    assert len(last) * cost_s / (last[-1] - last[0]) == pytest.approx(1 / 3, rel=0.05)


def test_a_turn_before_those_of_others_is_given_where_there_is_room() -> None:
    turns = PollSchedule()
    turns.next_s(3.0, 0.0)
    assert turns.next_s(0.3, 0.0) == pytest.approx(0.3)
    assert turns.next_s(3.0, 0.0) == pytest.approx(3.0 + BETWEEN_LOOKS_S)


def test_turns_of_closed_pages_delay_no_other_page() -> None:
    turns = PollSchedule()
    for _ in range(100):  # these pages are closed by now
        turns.next_s(0.0, 0.0)
    assert turns.next_s(1.0, 60.0) == pytest.approx(1.0)
