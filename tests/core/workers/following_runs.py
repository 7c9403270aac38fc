"""Helpers that wait for a run, and values in which two runs must agree."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from core.store import RunRecord, Status, Store

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


def going(run: RunRecord, step: int = 1) -> bool:
    """Test whether a run has reached a step. It must not have failed."""
    assert run.status != Status.FAILED, run.message
    return run.last_step >= step
