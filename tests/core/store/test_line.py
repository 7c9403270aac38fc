"""The order of the queue: users take turns, experiments come last, no run starves, and limits hold."""

from __future__ import annotations

import random

import pytest

from core.config import parse_config
from core.errors import ConfigError
from core.store import ExperimentTable, Status, Store
from core.store.names import NAME_CHARS

CONFIG = parse_config({"phases": [{"steps": 1}]})


def queued(store: Store, owner: str | None) -> str:
    return store.create(CONFIG, owner=owner)


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


def test_a_visitor_has_the_name_that_they_gave_themselves_unless_another_has_it(store: Store) -> None:
    store.name_visitor("abc", "Ada")
    queued(store, "abc")
    assert next_owner(store) == "abc"  # a turn keeps the name
    with pytest.raises(ConfigError, match="another visitor uses this name"):
        store.name_visitor("def", " aDA ")
    with pytest.raises(ConfigError):
        store.name_visitor("abc", "x" * (NAME_CHARS + 1))
    store.name_visitor("abc", "ada")  # the visitor's present name
    assert store.visitor_names() == {"abc": "ada"}
    store.name_visitor("abc", "")
    store.name_visitor("def", "Ada")
    assert store.visitor_names() == {"def": "Ada"}
