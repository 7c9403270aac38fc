"""Branches are trained: bit for bit like their parent up to a step, from a kept state or by repeating the steps."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from core.config import RATE, RunConfig
from core.config.edit import branch
from core.errors import PlaygroundError
from core.store import Status, Store
from core.weight_files import checkpoint_path, state_path
from core.workers import LocalEngine, run_worker
from tests.cases import slow_but
from tests.core.workers.following_runs import assert_equal_records, curve, going, wait_until

STEPS, AT = 12, 6
DISPATCH = LocalEngine.dispatch


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all tests of this file, which share their parents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "dispatch", carry_out)
        opened = Store(tmp_path_factory.mktemp("branches") / "runs")
        yield opened
        opened.close()


def carry_out(engine: LocalEngine) -> None:
    """Train the next queued run in this process, as a worker does."""
    claim = engine.store.claim_next(range(1))
    if claim is not None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            run_worker.work(engine.store.folder, claim)


def train(store: Store, draft: RunConfig) -> str:
    return LocalEngine(store, slots=range(1)).submit(draft)


@pytest.fixture(scope="module")
def parent_of(store: Store, draft: Any) -> Callable[..., str]:
    """Return the id of a finished run, trained once for its settings."""

    @cache
    def trained(part: str = "last_blocks", seed: int = 0) -> str:
        return train(store, parent_draft(draft, part, seed))

    return trained


def parent_draft(draft: Any, part: str = "last_blocks", seed: int = 0) -> RunConfig:
    trainable = {"part": part} | ({"blocks": 1} if part == "last_blocks" else {})
    more = {"probe": {"frame_steps": [3, AT, 9]}, "seed": seed}
    made: RunConfig = draft(steps=STEPS, more=more, trainable=trainable)
    return made


@contextlib.contextmanager
def without_states(store: Store, run_id: str) -> Iterator[None]:
    """Hide the states of a run, so that a branch repeats its steps."""
    paths = [*store.run_folder(run_id).glob("state-*")]
    assert paths
    for path in paths:
        path.rename(path.with_name(f"hidden-{path.name}"))
    yield
    for path in paths:
        path.with_name(f"hidden-{path.name}").rename(path)


def branch_of(store: Store, run_id: str, step: int = AT, **changes: Any) -> RunConfig:
    run = store.run(run_id)
    return branch(run.effective, run_id, step, title=run.title, **changes)


def repeated_steps(store: Store, branch_id: str, parent_id: str) -> list[int]:
    """Return the shared steps that the branch computed again: their durations differ."""
    times = [{step.step: step.values["step_s"] for step in store.steps(run)} for run in (branch_id, parent_id)]
    return [step for step in range(1, AT + 1) if times[0][step] != times[1][step]]


@pytest.mark.parametrize("part", slow_but(["last_blocks"], ["all", "last_blocks", "lora"]))
def test_a_branch_without_a_change_equals_its_parent_to_the_last_bit(
    part: str, store: Store, parent_of: Callable[..., str]
) -> None:
    parent = parent_of(part)
    made = train(store, branch_of(store, parent))
    with without_states(store, parent):
        again = train(store, branch_of(store, parent))
    assert repeated_steps(store, made, parent) == []
    assert repeated_steps(store, again, parent) == [*range(1, AT + 1)]
    expected = load_file(checkpoint_path(store.run_folder(parent)))
    for run_id in (made, again):
        assert store.run(run_id).status == Status.FINISHED, store.run(run_id).message
        assert_equal_records(store, run_id, parent)
        assert store.evaluations(run_id) == store.evaluations(parent)
        weights = load_file(checkpoint_path(store.run_folder(run_id)))
        assert weights.keys() == expected.keys()
        for name, values in weights.items():
            np.testing.assert_array_equal(values, expected[name])


CHANGES: dict[str, dict[str, Any]] = {
    "τ": {"turns": {"temperature": 0.05}},
    "sampler": {"sampler": "class_balanced"},
    "loss": {"objective": "rdrop-one-stage"},
    "all": {"objective": "dscl", "turns": {RATE: 0.1, "temperature": 0.05}, "sampler": "class_balanced"},
}


@pytest.mark.parametrize("change", slow_but(["all"], CHANGES))
def test_a_changed_branch_has_its_parent_s_past_and_another_future_from_both_starts(
    change: str, store: Store, parent_of: Callable[..., str]
) -> None:
    parent = parent_of()
    made = train(store, branch_of(store, parent, **CHANGES[change]))
    assert store.run(made).status == Status.FINISHED, store.run(made).message
    assert_equal_records(store, made, parent, AT)
    ours, theirs = curve(store, made), curve(store, parent)
    assert next(step for step in range(STEPS) if ours[step] != theirs[step]) == AT
    with without_states(store, parent):
        repeated = train(store, branch_of(store, parent, **CHANGES[change]))
    assert_equal_records(store, repeated, made)


def test_a_branch_between_two_kept_states_repeats_the_steps_since_the_first(
    store: Store, parent_of: Callable[..., str]
) -> None:
    parent = parent_of()
    path = state_path(store.run_folder(parent), AT)
    path.rename(hidden := path.with_name("hidden"))
    made = train(store, branch_of(store, parent))
    hidden.rename(path)
    assert_equal_records(store, made, parent)
    assert repeated_steps(store, made, parent) == [4, 5, 6]


@pytest.mark.parametrize("kept", slow_but([False], [True, False]))
def test_a_branch_needs_nothing_of_a_parent_that_is_deleted(kept: bool, store: Store, draft: Any) -> None:
    parent = train(store, parent_draft(draft, seed=1))
    expected = curve(store, parent)
    engine = LocalEngine(store, slots=range(1))
    with contextlib.nullcontext() if kept else without_states(store, parent):
        made = engine.queue(*engine.prepared(branch_of(store, parent)))
    store.discard(parent)
    store.purge_discarded(older_than_s=-1.0)
    assert not (store.folder / "files" / parent).exists()
    engine.dispatch()
    assert store.run(made).status == Status.FINISHED, store.run(made).message
    assert curve(store, made) == expected


def test_a_repeated_step_that_differs_ends_the_branch_with_a_sentence(
    store: Store, parent_of: Callable[..., str]
) -> None:
    parent = parent_of()
    (step,) = store.steps(parent, after=3, most=1)
    other = dict(step.values) | {"loss": float(np.nextafter(np.float32(step.values["loss"]), np.float32(9)))}
    sql = "UPDATE steps SET measures = ? WHERE run_id = ? AND step = 4"
    store.write(sql, (json.dumps(other), parent))
    with without_states(store, parent):
        run = store.run(train(store, branch_of(store, parent)))
    store.write(sql, (json.dumps(step.values), parent))
    assert (run.status, run.last_step) == (Status.FAILED, 3)
    assert "Step 4 differs from that of the run it repeats" in str(run.message)


def test_a_branch_that_cannot_be_trained_is_refused_and_leaves_nothing(
    store: Store, parent_of: Callable[..., str]
) -> None:
    parent = parent_of()
    other = branch_of(store, parent).model_copy(update={"seed": 5})
    refused = {
        "no frame at this step": branch_of(store, parent, 5),
        "or ends there": branch_of(store, parent, STEPS),
        "choose one of 0, 3, 6": branch_of(store, parent, 99),
        "settings up to step 6 are not those": other.model_copy(
            update={"task": other.task.model_copy(update={"content_hash": None})}
        ),
    }
    before = store.runs()
    for sentence, config in refused.items():
        with pytest.raises(PlaygroundError, match=sentence):
            train(store, config)
    row = store._row(parent)
    cell = store.run(parent).config.model_copy(update={"executor": "surface"}).to_json()
    for column, value, sentence in (("config_hash", None, "another machine"), ("config", cell, "train it in full")):
        config = branch_of(store, parent)
        store.write(f"UPDATE runs SET {column} = ? WHERE id = ?", (value, parent))
        with pytest.raises(PlaygroundError, match=sentence):
            train(store, config)
        store.write(f"UPDATE runs SET {column} = ? WHERE id = ?", (row[column], parent))
    assert store.runs() == before


def test_a_branch_counts_as_a_run_of_the_visitor_who_starts_it(
    store: Store, parent_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, config = LocalEngine(store, slots=range(1)), branch_of(store, parent_of())
    prepared = engine.prepared(config)
    monkeypatch.setenv("SCL_SHARED", "1")
    monkeypatch.setenv("SCL_VISITOR_WAITING", "1")
    made = engine.queue(*prepared, owner="visitor")
    with pytest.raises(PlaygroundError, match="the limit"):
        engine.queue(*prepared, owner="visitor")
    run = store.run(made)
    assert (run.owner, run.last_step, run.probe) == ("visitor", AT, store.run(parent_of()).probe)
    store.write("UPDATE runs SET last_step = 3 WHERE id = ?", (made,))
    with pytest.raises(PlaygroundError, match="still repeats"):
        engine.turn(made, "temperature", 0.1)
    engine.stop(made)


def test_a_branch_is_never_taken_for_a_run_of_an_experiment(store: Store, parent_of: Callable[..., str]) -> None:
    parent = store.run(parent_of())
    made = train(store, branch_of(store, parent.id))
    assert store.run(made).config.model_copy(update={"branch": None, "name": ""}) == parent.config
    assert store.same_as(parent.config) != made


@pytest.mark.slow
def test_a_killed_branch_resumes_on_the_same_curve(tmp_path: Path, draft: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalEngine, "dispatch", DISPATCH)
    store, shared = Store(tmp_path / "runs"), 15
    engine = LocalEngine(store, slots=range(1), forks=False)
    more = {"probe": {"frame_steps": [3, shared]}, "checkpoint": {"every_steps": 4}}
    parent = engine.submit(draft(steps=24, more=more))
    wait_until(store, parent, lambda run: run.status == Status.FINISHED)
    state_path(store.run_folder(parent), shared).unlink()  # so that steps are repeated
    config = branch_of(store, parent, shared, turns={"temperature": 0.05})
    killed, whole = engine.submit(config), engine.submit(config)
    wait_until(store, killed, lambda run: going(run, 6))
    worker = store.worker_of(killed)
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(store, killed, lambda run: run.status == Status.INTERRUPTED)
    engine.resume(killed)
    for run_id in (killed, whole):
        run = wait_until(store, run_id, lambda run: run.status.ended)
        assert run.status == Status.FINISHED, run.message
    assert store.run(killed).attempt == 2
    assert_equal_records(store, killed, parent, shared)
    assert_equal_records(store, killed, whole, 24)
    store.close()
