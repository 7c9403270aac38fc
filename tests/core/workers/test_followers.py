"""Runs in several processes through an engine: they end together, stop, resume, and report a lost process."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import TrainingError
from core.store import Status, Store
from core.store.work import RUNS
from core.workers import LocalEngine
from core.workers.followers import ranks_of
from tests.core.workers.following_runs import wait_until
from tests.core.workers.watching import wait_for

LONG = 50_000
Draft = Callable[..., RunConfig]


@pytest.fixture
def engine(store: Store) -> LocalEngine:
    return LocalEngine(store, slots=range(1))


def following(store: Store, run_id: str) -> list[psutil.Process]:
    """Return the other processes of a run, which print into its log."""
    log, found = str(store.log_path(run_id)), []
    for process in psutil.process_iter(["cmdline"]):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            is_other = "--multiprocessing-fork" in (process.info["cmdline"] or [])
            if is_other and os.readlink(f"/proc/{process.pid}/fd/1") == log:
                found.append(process)
    return found


@pytest.mark.slow
def test_a_run_in_two_processes_finishes_and_leaves_none_behind(engine: LocalEngine, draft: Draft) -> None:
    """Run without a warm process too, so that the worker starts directly."""
    assert engine.store.warm_process(RUNS) is None
    run_id = engine.submit(draft(more={"processes": 2}))
    run = wait_until(engine.store, run_id, lambda r: r.status.ended)
    assert (run.status, run.last_step) == (Status.FINISHED, 8)
    assert len(engine.store.steps(run_id)) == 8
    assert engine.store.frame_steps(run_id) == list(run.config.probe.frame_steps or ())
    wait_for(lambda: not following(engine.store, run_id))


@pytest.mark.slow
def test_it_takes_knobs_stops_and_resumes(engine: LocalEngine, draft: Draft) -> None:
    store = engine.store
    run_id = engine.submit(draft(steps=LONG, more={"processes": 2}))
    wait_until(store, run_id, lambda r: r.last_step >= 3)
    engine.turn(run_id, "lambda", 0.25)
    wait_until(store, run_id, lambda _: bool(store.knob_turns(run_id)))
    (turn,) = store.knob_turns(run_id)
    engine.stop(run_id)
    stopped = wait_until(store, run_id, lambda r: r.status.ended)
    assert stopped.status == Status.STOPPED
    assert stopped.checkpoint_step == stopped.last_step
    engine.resume(run_id)
    wait_until(store, run_id, lambda r: r.last_step >= stopped.last_step + 3)
    values = {step.step: step.values["lambda"] for step in store.steps(run_id)}
    assert {values[step] for step in values if step >= turn.step} == {0.25}
    (other,) = following(store, run_id)
    other.kill()
    failed = wait_until(store, run_id, lambda r: r.status.ended)
    assert failed.status == Status.FAILED
    assert str(failed.message).startswith("The processes of the run lost contact")


def test_a_process_that_does_not_start_is_named(draft: Draft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, data = prepare(draft(more={"processes": 2}), gpu=False)
    monkeypatch.setattr("multiprocessing.spawn._python_exe", os.fsencode(shutil.which("false") or ""))
    with (
        pytest.raises(TrainingError, match="did not start"),
        ranks_of(config, data, weights=tmp_path, start=None, translations=None),
    ):
        pytest.fail("it began")
