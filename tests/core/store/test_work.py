"""The table of work: one process per claim. Settings of the claiming process are deleted after use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.config import parse_config
from core.store import Status, Store
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
