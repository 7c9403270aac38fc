"""The table of work: the order of the queue, the slots of a run, and one process per claim.

Users take turns, experiments come last, no run starves, and limits hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.config import parse_config
from core.store import ExperimentTable, Status, Store
from core.store.liveness import liveness_of
from core.store.work import NOTHING, RUNS, Claim, WarmProcess

CONFIG = parse_config({"phases": [{"steps": 1}]})
SETTINGS = {"SCL_ADMIN_KEY": "secret"}


def claimed(store: Store) -> Claim:
    store.create(CONFIG)
    claim = store.claim_next(range(1), liveness_of(), request=SETTINGS)
    assert claim is not None
    return claim


def test_of_two_processes_that_were_begun_for_one_claim_one_registers(store: Store) -> None:
    claim, holder = claimed(store), liveness_of()
    first, second = (replace(holder, pid=holder.pid + more) for more in (1, 2))
    assert store.register(claim, first, holder)
    assert not store.register(claim, second, holder)
    assert store.register(claim, first, holder)  # the process that takes the steps registers again


@pytest.mark.parametrize(
    "leave",
    [
        lambda store, claim: store.register(claim, liveness_of()),
        lambda store, claim: store.hand_over(claim, None),
        lambda store, claim: store.queue_again(claim.id, 0.0),
        lambda store, claim: store.end(claim.id, Status.FAILED),
    ],
    ids=["register", "hand over", "queue again", "end"],
)
def test_settings_of_the_claimer_are_kept_no_longer_than_needed(
    store: Store, leave: Callable[[Store, Claim], object]
) -> None:
    claim = claimed(store)
    assert store.find_held_work(RUNS, liveness_of()) == (claim, SETTINGS)
    leave(store, claim)
    assert [row["request"] for row in store.all("SELECT request FROM work")] == ["{}"]


def test_what_was_handed_to_a_process_that_died_keeps_its_slot_for_the_next(store: Store) -> None:
    me = liveness_of()
    dead = replace(me, started_at=me.started_at + 1000)
    store.name_warm_process(RUNS, WarmProcess(dead, NOTHING))
    first, second = store.create(CONFIG), store.create(CONFIG)
    assert store.claim_next(range(1), dead) == (first, 1, 0)
    assert store.run(first).status == Status.INTERRUPTED
    assert store.claim_next(range(1), me) is None
    store.name_warm_process(RUNS, WarmProcess(me, NOTHING))
    assert store.run(first).status == Status.STARTING
    found = store.find_held_work(RUNS, me)
    assert found is not None
    assert found[0].id == first != second


# The order of the queue


def queued(store: Store, owner: str | None = None, processes: int = 1) -> str:
    return store.create(CONFIG.model_copy(update={"processes": processes}), owner=owner)


def next_owner(store: Store, slots: int = 50, most: int | None = None) -> str | None:
    found = store.claim_next(range(slots), most_of_owner=most)
    return None if found is None else store.run(found[0]).owner


def test_people_take_turns_whoever_queued_first(store: Store) -> None:
    for owner in ["ada"] * 4 + ["bob", "eve"]:
        queued(store, owner)
    assert [next_owner(store) for _ in range(7)] == ["ada", "bob", "eve", "ada", "ada", "ada", None]
    for owner in ("ada", "bob"):  # ada had the latest turn, bob an earlier one
        queued(store, owner)
    assert [next_owner(store), next_owner(store)] == ["bob", "ada"]


def test_runs_of_experiments_wait_behind_people_and_take_turns_too(store: Store) -> None:
    table = ExperimentTable(store.folder)
    for owner in ("ada", "bob"):
        experiment = table.create("many", "{}", owner)
        assert table.experiment(experiment).owner == owner
        for seed in range(2):
            store.create(CONFIG, (experiment, 0, seed), owner)
    queued(store, "eve")
    assert [next_owner(store) for _ in range(5)] == ["eve", "ada", "bob", "ada", "bob"]


def test_nobody_has_more_than_they_may(store: Store) -> None:
    for owner in ("ada", "ada", "ada", "bob", None, None):
        queued(store, owner)
    for _ in range(4):
        store.claim_next(range(50), most_of_owner=1)
    running = [run.owner for run in store.runs() if run.status == Status.STARTING]
    assert sorted(map(str, running)) == ["None", "None", "ada", "bob"]
    assert next_owner(store, most=1) is None
    assert store.claim_next(range(50), accepts=lambda _config, of_experiment: of_experiment) is None
    assert store.has_queued()
    ended = next(run for run in store.runs() if run.owner == "ada" and run.status == Status.STARTING)
    store.attempt(ended.id, 1).end(Status.FINISHED)
    assert next_owner(store, most=1) == "ada"


def test_a_run_whose_worker_is_gone_keeps_nobody_from_their_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        queued(store, "ada")
    assert next_owner(store, most=1) == "ada"
    monkeypatch.setattr("core.store.liveness.HAND_OVER_S", -1.0)
    assert next_owner(store, most=1) == "ada"


def test_nothing_is_starved_and_nothing_begun_twice(store: Store) -> None:
    """In any queue, every waiting user has a turn between two turns of another user."""
    rng, begun = random.Random(0), list[str]()
    people = ["ada", "bob", "eve", "kim"]
    for owner in people:
        queued(store, owner)
    since: dict[str, int] = {}
    for turn in range(120):
        for _ in range(rng.randint(0, 2)):
            queued(store, rng.choice(people))
        waiting = {run.owner for run in store.queued_runs()}
        found = store.claim_next(range(1_000))
        if found is None:
            continue
        begun.append(found[0])
        owner = store.run(found[0]).owner
        assert owner in waiting
        since = {one: count for one, count in since.items() if one in waiting}
        for other in waiting - {owner}:
            since[str(other)] = since.get(str(other), 0) + 1
            assert since[str(other)] <= len(people), turn
        since.pop(str(owner), None)
        store.attempt(found[0], 1).end(Status.FINISHED)
    assert len(begun) == len(set(begun))


# Slots


def next_slot(store: Store, count: int) -> tuple[str, int] | None:
    found = store.claim_next(range(count))
    return None if found is None else (found[0], found[2])


def test_a_run_in_several_processes_waits_until_as_many_slots_are_free(store: Store) -> None:
    one, two, last = queued(store), queued(store, processes=2), queued(store)
    assert next_slot(store, 2) == (one, 0)
    assert next_slot(store, 2) is None  # two slots are not free, and the next run does not overtake
    store.attempt(one, 1).end(Status.FINISHED)
    assert next_slot(store, 2) == (two, 0)
    assert next_slot(store, 2) is None
    store.attempt(two, 1).end(Status.FINISHED)
    assert next_slot(store, 2) == (last, 0)


def test_a_gap_that_is_too_small_is_left(store: Store) -> None:
    first, second = queued(store), queued(store)
    assert [next_slot(store, 4), next_slot(store, 4)] == [(first, 0), (second, 1)]
    store.attempt(first, 1).end(Status.FINISHED)
    wide = queued(store, processes=2)
    assert next_slot(store, 4) == (wide, 2)
    assert next_slot(store, 4) is None
    small = queued(store)
    assert next_slot(store, 4) == (small, 0)


def test_with_fewer_slots_than_processes_a_run_takes_all(store: Store) -> None:
    run_id = queued(store, processes=2)
    assert next_slot(store, 1) == (run_id, 0)
    queued(store)
    assert next_slot(store, 1) is None


def test_no_slot_is_ever_given_twice(store: Store) -> None:
    rng, held = random.Random(0), dict[str, set[int]]()
    for _ in range(150):
        if held and rng.random() < 0.4:
            gone = rng.choice(list(held))
            store.attempt(gone, 1).end(Status.FINISHED)
            del held[gone]
        queued(store, processes=rng.randint(1, 3))
        while (found := next_slot(store, 5)) is not None:
            run_id, first = found
            mine = set(range(first, first + store.run(run_id).config.processes))
            assert mine <= set(range(5))
            assert not mine & set().union(*held.values())
            held[run_id] = mine
