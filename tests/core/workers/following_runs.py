"""Helpers that wait for a run, end runs, and compare the records of two runs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from core.store import RunRecord, Status, Store
from core.workers import Engine

WAIT_S = 100.0


def wait_until(store: Store, run_id: str, holds: Callable[[RunRecord], bool], timeout_s: float = WAIT_S) -> RunRecord:
    """Wait for a condition on a run. Returns: the run."""
    deadline = time.monotonic() + timeout_s
    while not holds(run := store.run(run_id)):
        if time.monotonic() > deadline:
            log = store.log_path(run_id)
            said = log.read_text() if log.exists() else "no log"
            pytest.fail(f"still {run.status} at step {run.last_step}, {run.message}: {said}")
        time.sleep(0.02)
    return run


def curve(store: Store, run_id: str) -> list[dict[str, float]]:
    """Return the values that must repeat to the last bit: every measure except the time."""
    return [{k: v for k, v in step.values.items() if k != "step_s"} for step in store.steps(run_id)]


def assert_equal_records(store: Store, one: str, other: str, last: int | None = None) -> None:
    """Compare every step, frame and validation score of two runs, up to a step, to the last bit."""
    assert curve(store, one)[:last] == curve(store, other)[:last]
    steps = [[step for step in store.frame_steps(run) if last is None or step <= last] for run in (one, other)]
    assert steps[0] == steps[1]
    for step in steps[0]:
        found, expected = store.frame(one, step), store.frame(other, step)
        np.testing.assert_array_equal(found.embeddings, expected.embeddings)
        np.testing.assert_array_equal(found.logits, expected.logits)
        np.testing.assert_array_equal(found.attention, expected.attention)
        np.testing.assert_array_equal(store.map_points(one, step), store.map_points(other, step))
    scores = [[e for e in store.evaluations(run) if e.split == "validation"] for run in (one, other)]
    kept = [[e for e in found if last is None or e.step <= last] for found in scores]
    assert kept[0] == kept[1]


def stop_runs(engine: Engine) -> None:
    """Stop every queued and active run, and wait for its end."""
    for run in engine.store.runs():
        if run.status == Status.QUEUED or run.status.active:
            engine.stop(run.id)
            wait_until(engine.store, run.id, lambda r: r.status.ended)


def going(run: RunRecord, step: int = 1) -> bool:
    """Test whether a run has reached a step. It must not have failed."""
    assert run.status != Status.FAILED, run.message
    return run.last_step >= step
