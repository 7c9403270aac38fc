"""When queued runs begin, against real claims in the order in which they really come."""

from __future__ import annotations

import random

import pytest

from core.artifacts.waiting_time import Place, places, played
from core.config import parse_config
from core.store import Status, Store, Waiting


def waiting(name: str, owner: str | None = None, *, background: bool = False, at: float = 0.0) -> Waiting:
    return Waiting(name, owner, background, 0.0, at)


def test_one_after_the_other_behind_what_goes_on() -> None:
    line = [waiting("a", at=1), waiting("b", at=2)]
    found = played(line, {"a": 10.0, "b": 5.0}, [(None, 3.0)], 1, None)
    assert found == {"a": Place(0, 3.0), "b": Place(1, 13.0)}


def test_two_at_a_time_begin_where_one_ends_first() -> None:
    line = [waiting(name, at=i) for i, name in enumerate("abc")]
    found = played(line, {"a": 10.0, "b": 4.0, "c": 1.0}, [], 2, None)
    assert found == {"a": Place(0, 0.0), "b": Place(1, 0.0), "c": Place(2, 4.0)}


def test_people_take_turns_and_experiments_wait_behind_them() -> None:
    line = [
        waiting("a1", "ada", at=1),
        waiting("a2", "ada", at=2),
        waiting("b1", "bob", at=3),
        waiting("x", "eve", background=True, at=0),
    ]
    takes = dict.fromkeys(("a1", "a2", "b1", "x"), 10.0)
    found = played(line, takes, [], 1, None)
    assert sorted(found, key=lambda name: found[name].before) == ["a1", "b1", "a2", "x"]
    assert found["x"].seconds == 30.0


def test_who_has_as_many_as_they_may_waits_for_their_own() -> None:
    line = [waiting("a", "ada", at=1), waiting("b", "bob", at=2)]
    found = played(line, {"a": 10.0, "b": 10.0}, [("ada", 7.0)], 5, 1)
    assert found == {"b": Place(0, 0.0), "a": Place(1, 7.0)}


def test_behind_what_takes_nobody_knows_how_long_times_are_unknown() -> None:
    line = [waiting("a", at=1), waiting("b", at=2)]
    assert played(line, {"a": None, "b": 1.0}, [], 1, None) == {"a": Place(0, 0.0), "b": Place(1, None)}
    assert played(line, {"a": 1.0, "b": 1.0}, [(None, None)], 1, None) == {"a": Place(0, None), "b": Place(1, None)}
    assert played(line, {"a": None, "b": 1.0}, [], 2, None)["b"] == Place(1, 0.0)


@pytest.mark.parametrize("most", [None, 1, 2])
def test_the_order_is_that_of_real_claims(most: int | None, store: Store) -> None:
    """Two slots, in which the run that began first ends first."""
    rng = random.Random(1)
    config = parse_config({"phases": [{"steps": 1}]})
    for _ in range(14):
        store.create(config, owner=rng.choice(["ada", "bob", "eve"]))
    line = store.line()
    expected = played(line, {run.id: 10.0 for run in line}, [], 2, most)
    order, going = list[str](), list[str]()
    while len(order) < len(line):
        found = store.claim_next(range(2), most_of_owner=most)
        if found is None:
            store.attempt(going.pop(0), 1).end(Status.FINISHED)
            continue
        order.append(found[0])
        going.append(found[0])
    assert sorted(expected, key=lambda run_id: expected[run_id].before) == order


def test_the_pace_is_that_of_the_run_that_is_most_alike(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def finished(batch: int, seconds: float) -> None:
        run_id = store.create(parse_config({"phases": [{"steps": 10, "batch_size": batch}]}))
        store.claim_next(range(1))
        with store.transaction() as db:
            db.execute(
                "UPDATE runs SET status = 'finished', last_step = 10, worked_s = ? WHERE id = ?", (seconds, run_id)
            )

    assert places(store, 1) == {}
    finished(8, 20.0)
    finished(16, 40.0)
    first = store.create(parse_config({"phases": [{"steps": 5, "batch_size": 8}]}))
    second = store.create(parse_config({"phases": [{"steps": 5, "batch_size": 64}]}))
    third = store.create(parse_config({"phases": [{"steps": 5}], "encoder": {"id": "other/encoder"}}))
    last = store.create(parse_config({"phases": [{"steps": 5}]}))
    found = places(store, 1)
    assert [found[run_id] for run_id in (first, second, third, last)] == [
        Place(0, 0.0),
        Place(1, 10.0),  # five steps of 2 s
        Place(2, 30.0),  # of an unknown batch, by the newest with this encoder: five of 4 s
        Place(3, None),
    ]
