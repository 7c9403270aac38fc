"""The polling interval of pages on a live run, for many visitors."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from pages.ui.waiting import BETWEEN_LOOKS_S, PollSchedule

NEAR = 1e-9


def test_a_single_page_polls_at_the_interval_it_asks_for() -> None:
    turns, now = PollSchedule(), 0.0
    for _ in range(5):
        assert turns.next_s(1.0, now) == pytest.approx(1.0)
        now += 1.0


def polls(count: int, cost_s: float = 0.0) -> list[tuple[float, int]]:
    """Simulate pages that a class opens at once. Returns: moment and page of each poll, ten per page on average."""
    turns = PollSchedule()
    due = {page: turns.next_s(1.0, 0.0, cost_s) for page in range(count)}
    found = []
    while len(found) < 10 * count:
        page = min(due, key=due.__getitem__)
        found.append((due[page], page))
        due[page] += turns.next_s(1.0, due[page], cost_s)
    return found


def test_many_pages_take_turns_and_each_has_as_many() -> None:
    count = 50
    moments, pages = zip(*polls(count), strict=True)
    assert min(after - before for before, after in pairwise(moments)) >= BETWEEN_LOOKS_S - NEAR
    assert moments[-1] - moments[0] == pytest.approx((len(moments) - 1) * BETWEEN_LOOKS_S, rel=0.05)
    assert Counter(pages) == dict.fromkeys(range(count), 10)


def test_the_slower_the_machine_the_rarer_the_polls() -> None:
    """Fifty pages whose polls cost 0.1 s of a core each take a third of it."""
    last = [at for at, _page in polls(50, 0.1)][-150:]
    assert len(last) * 0.1 / (last[-1] - last[0]) == pytest.approx(1 / 3, rel=0.05)


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
