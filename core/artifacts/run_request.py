"""Which run a job was asked about, and what it had recorded by then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import StoreError
from core.events import Probe
from core.store import RunRecord, Store


def run_request(run: RunRecord) -> dict[str, Any]:
    """How a request names a run. What is asked after it began again is not what was asked before."""
    return {"run": run.id, "attempt": run.begun_attempt}


def probe_of(run: RunRecord) -> Probe:
    """The rows that a run's frames show. Raises: StoreError for a run that has not started."""
    if run.probe is None:
        raise StoreError("Run {run} has not started: wait until its encoder is loaded.", run=run.id)
    return run.probe


def run_from_request(store: Store, request: Mapping[str, Any]) -> RunRecord:
    """The run that a request names.

    Raises: RunNotFoundError; StoreError for one that has not started, or has begun again since, so that its frames may
        be others by now.
    """
    run = store.run(str(request.get("run")))
    probe_of(run)
    if run.begun_attempt != request.get("attempt"):
        raise StoreError("Run {run} has begun again since this was asked: open its page again.", run=run.id)
    return run
