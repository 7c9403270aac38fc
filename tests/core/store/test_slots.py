"""A run in several processes has several consecutive slots."""

from __future__ import annotations

import random

from core.config import parse_config
from core.store import Status, Store


def queued(store: Store, processes: int) -> str:
    return store.create(parse_config({"phases": [{"steps": 1}], "processes": processes}))


def claimed(store: Store, count: int) -> tuple[str, int] | None:
    found = store.claim_next(range(count))
    return None if found is None else (found[0], found[2])


def test_it_waits_until_as_many_are_free(store: Store) -> None:
    one, two, last = queued(store, 1), queued(store, 2), queued(store, 1)
    assert claimed(store, 2) == (one, 0)
    assert claimed(store, 2) is None  # two slots are not free, and the next run does not overtake
    store.attempt(one, 1).end(Status.FINISHED)
    assert claimed(store, 2) == (two, 0)
    assert claimed(store, 2) is None
    store.attempt(two, 1).end(Status.FINISHED)
    assert claimed(store, 2) == (last, 0)


def test_a_gap_that_is_too_small_is_left(store: Store) -> None:
    first, second = queued(store, 1), queued(store, 1)
    assert [claimed(store, 4), claimed(store, 4)] == [(first, 0), (second, 1)]
    store.attempt(first, 1).end(Status.FINISHED)
    wide = queued(store, 2)
    assert claimed(store, 4) == (wide, 2)
    assert claimed(store, 4) is None
    small = queued(store, 1)
    assert claimed(store, 4) == (small, 0)


def test_with_fewer_slots_than_processes_it_takes_all(store: Store) -> None:
    run_id = queued(store, 2)
    assert claimed(store, 1) == (run_id, 0)
    queued(store, 1)
    assert claimed(store, 1) is None


def test_no_slot_is_ever_given_twice(store: Store) -> None:
    rng, held = random.Random(0), dict[str, set[int]]()
    for _ in range(150):
        if held and rng.random() < 0.4:
            gone = rng.choice(list(held))
            store.attempt(gone, 1).end(Status.FINISHED)
            del held[gone]
        queued(store, rng.randint(1, 3))
        while (found := claimed(store, 5)) is not None:
            run_id, first = found
            mine = set(range(first, first + store.run(run_id).config.processes))
            assert mine <= set(range(5))
            assert not mine & set().union(*held.values())
            held[run_id] = mine
