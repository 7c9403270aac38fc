"""Start times of queued runs, against real claims in their real order, and the speed of earlier runs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from core.artifacts.waiting_time import Place, measured_speed, places, remaining_time, simulate_queue
from core.config import RunConfig, parse_config
from core.events import Step
from core.store import ExperimentTable, Status, Store, Waiting
from core.store.attempt import Attempt
from tests.cases import each
from tests.core.store.claims import claimed


def waiting(name: str, owner: str | None = None, *, background: bool = False, at: float = 0.0) -> Waiting:
    return Waiting(name, owner, background, 0.0, at)


@each(
    ("takes", "owners", "going", "slots", "most", "found"),
    [
        ({"a": 10.0, "b": 5.0}, {}, [(None, 3.0)], 1, None, {"a": (0, 3.0, 13.0), "b": (1, 13.0, 18.0)}),
        ({"a": 9.0, "b": 4.0, "c": 1.0}, {}, [], 2, None, {"a": (0, 0.0, 9.0), "b": (1, 0.0, 4.0), "c": (2, 4.0, 5.0)}),
        ({"a": 9.0, "b": 9.0}, {"a": "ada"}, [("ada", 7.0)], 5, 1, {"b": (0, 0.0, 9.0), "a": (1, 7.0, 16.0)}),
        ({"a": None, "b": 1.0}, {}, [], 1, None, {"a": (0, 0.0, None), "b": (1, None, None)}),
        ({"a": 1.0, "b": 1.0}, {}, [(None, None)], 1, None, {"a": (0, None, None), "b": (1, None, None)}),
        ({"a": None, "b": 1.0}, {}, [], 2, None, {"a": (0, 0.0, None), "b": (1, 0.0, 1.0)}),
    ],
)
def test_runs_begin_behind_what_goes_on_and_behind_the_unknown_at_unknown_times(
    takes: dict[str, float | None], owners: dict[str, str], going: Any, slots: int, most: int | None, found: Any
) -> None:
    line = [waiting(name, owners.get(name, "bob"), at=at) for at, name in enumerate(takes)]
    expected = {name: Place(*place) for name, place in found.items()}
    assert simulate_queue(line, takes, going, slots, most) == expected


def test_a_long_line_is_played_through_at_once() -> None:
    line = [waiting(str(i), f"visitor {i % 20}", background=bool(i % 2), at=i) for i in range(3_000)]
    start = time.process_time()
    found = simulate_queue(line, {run.id: 1.0 for run in line}, [], 1, 1)
    assert time.process_time() - start < 1.0
    assert sorted(place.before for place in found.values()) == list(range(3_000))


@pytest.mark.parametrize("most", [None, 1])
def test_the_order_is_that_of_real_claims(most: int | None, store: Store) -> None:
    """Users take turns, and experiments wait behind them. Of two slots, the first to begin is the first to end."""
    rng = random.Random(1)
    config = parse_config({"phases": [{"steps": 1}]})
    experiment = ExperimentTable(store.folder).create("many", "{}")
    for seed in range(20):
        cell = (experiment, 0, seed) if rng.random() < 0.3 else None
        store.create(config, cell, owner=rng.choice(["ada", "bob", "eve"]))
    line = store.queued_runs()
    assert {run.background for run in line} == {False, True}
    expected = simulate_queue(line, {run.id: 10.0 for run in line}, [], 2, most)
    order, going = list[str](), list[str]()
    while len(order) < len(line):
        found = store.claim_next(range(2), most_of_owner=most)
        if found is None:
            store.attempt(going.pop(0), 1).end(Status.FINISHED)
            continue
        order.append(found[0])
        going.append(found[0])
    assert sorted(expected, key=lambda run_id: expected[run_id].before) == order


@pytest.fixture
def finished(store: Store) -> Callable[..., str]:
    """Return a function that makes a run of ten steps, with a batch size and times."""

    def make(batch: int, head_s: float, step_s: float, tail_s: float, *, pause_s: float = 0.0) -> str:
        run_id = store.create(parse_config({"phases": [{"steps": 10, "batch_size": batch}]}))
        store.claim_next(range(1))
        start, worked_s = 1_000.0, head_s + 10 * step_s + tail_s
        with store.transaction() as db:
            for step in range(1, 11):
                at = start + head_s + step * step_s + (pause_s if step > 5 else 0.0)
                db.execute("INSERT INTO steps (run_id, step, at, measures) VALUES (?, ?, ?, '{}')", (run_id, step, at))
            db.execute("UPDATE runs SET last_step = 10, worked_s = ? WHERE id = ?", (worked_s, run_id))
            db.execute(
                "UPDATE work SET status = 'finished', ended_at = ? WHERE id = ?",
                (start + worked_s + pause_s, run_id),
            )
        return run_id

    return make


def queued(store: Store, steps: int, batch: int = 16, **more: object) -> str:
    return store.create(parse_config({"phases": [{"steps": steps, "batch_size": batch}]} | more))


def test_the_pace_is_that_of_the_run_that_is_most_alike(store: Store, finished: Callable[..., str]) -> None:
    assert places(store, 1) == {}
    finished(8, 3.0, 2.0, 4.0)
    finished(16, 1.0, 4.0, 5.0)
    first, second = queued(store, 5, 8), queued(store, 20, 64)
    third, last = queued(store, 5, encoder={"id": "other/encoder"}), queued(store, 5)
    found = places(store, 1)
    assert [found[run_id] for run_id in (first, second, third, last)] == [
        Place(0, 0.0, 17.0),  # five steps of 2 s between 3 s and 4 s, not half the time of ten steps
        Place(1, 17.0, 103.0),  # new batch size: from the newest with this encoder, 20 of 4 s between 1 s and 5 s
        Place(2, 103.0, None),
        Place(3, None, None),
    ]


def test_a_pause_among_the_steps_is_no_pace(store: Store, finished: Callable[..., str]) -> None:
    finished(16, 1.0, 2.0, 3.0, pause_s=500.0)
    waits = queued(store, 10)
    assert places(store, 1)[waits].end_s == pytest.approx(24.0)


def test_runs_have_ended_once_the_last_of_them_has_and_whoever_goes_first(
    store: Store, finished: Callable[..., str]
) -> None:
    ended = finished(16, 1.0, 2.0, 3.0)
    one, between, two = queued(store, 10), queued(store, 5), queued(store, 10)
    assert remaining_time(store, {one}, 1) == (pytest.approx(24.0), 0)
    assert remaining_time(store, {one, two}, 1) == (pytest.approx(24.0 + 14.0 + 24.0), 1)
    assert remaining_time(store, {between}, 1) == (pytest.approx(24.0 + 14.0), 1)
    assert remaining_time(store, {ended}, 1) == (0.0, 0)
    assert remaining_time(store, {queued(store, 5, encoder={"id": "other/encoder"})}, 1).seconds is None


def ends(attempt: Attempt, step_s: float) -> None:
    """Finish a run of ten steps, each of which took this many seconds."""
    attempt.steps([Step(number, {"loss": 1.0, "tokens": 100.0, "step_s": step_s}) for number in range(1, 11)])
    attempt.end(Status.FINISHED)


def test_the_speed_is_that_of_the_newest_run_here_that_measured_something_on_the_same_hardware(
    store: Store, draft: Callable[..., RunConfig]
) -> None:
    config = draft(steps=10)
    ends(store.adopt("a" * 12, config, "", 1.0), step_s=0.001)
    assert measured_speed(store, config) is None, "a run from elsewhere says nothing of this machine"
    ends(claimed(store, config), step_s=0.2)
    own = measured_speed(store, config)
    assert own is not None
    assert measured_speed(store, config.model_copy(update={"device": "auto"})) is None
    ends(store.adopt("b" * 12, config, "", 1.0), step_s=0.001)
    ends(claimed(store, config), step_s=0.0)
    assert measured_speed(store, config) == own
    ends(claimed(store, config), step_s=0.1)
    assert measured_speed(store, config) > own
