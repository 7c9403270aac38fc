"""Runs with a registered attempt, with which tests write records."""

from __future__ import annotations

from core.config import RunConfig, parse_config
from core.store import Liveness, Store
from core.store.attempt import Attempt
from core.store.liveness import boot_id, host_name

DEAD = Liveness(host_name(), boot_id(), pid=2**22 - 1, started_at=1.0)


def config(steps: int = 9) -> RunConfig:
    return parse_config({"phases": [{"steps": steps}], "probe": {"size": 3, "frame_steps": [0, steps]}})


def claimed(store: Store, given: RunConfig | None = None, cell: tuple[str, int, int] | None = None) -> Attempt:
    """Return a registered first attempt at a new run."""
    run_id = store.create(given or config(), cell)
    claim = store.claim_next(range(100))
    assert claim is not None
    assert claim[:2] == (run_id, 1)
    attempt = store.attempt(run_id, 1)
    attempt.register()
    return attempt
