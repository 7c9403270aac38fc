"""The expected speed of a run, measured on earlier runs."""

from __future__ import annotations

from collections.abc import Callable

from core.artifacts.speed import measured_speed
from core.config import RunConfig
from core.events import Step
from core.store import Status, Store
from core.store.attempt import Attempt


def ends(attempt: Attempt, step_s: float) -> None:
    """Finish a run of ten steps, each of which took this many seconds."""
    attempt.steps([Step(number, {"loss": 1.0, "tokens": 100.0, "step_s": step_s}) for number in range(1, 11)])
    attempt.end(Status.FINISHED)


def own_run(store: Store, config: RunConfig) -> Attempt:
    run_id = store.create(config)
    attempt = store.attempt(run_id, store.claim_next(range(100))[1])
    attempt.register()
    return attempt


def test_the_speed_is_that_of_the_newest_run_here_that_measured_something_on_the_same_hardware(
    store: Store, draft: Callable[..., RunConfig]
) -> None:
    config = draft(steps=10)
    ends(store.adopt("a" * 12, config, "", 1.0), step_s=0.001)
    assert measured_speed(store, config) is None, "a run from elsewhere says nothing of this machine"
    ends(own_run(store, config), step_s=0.2)
    own = measured_speed(store, config)
    assert own is not None
    assert measured_speed(store, config.model_copy(update={"device": "auto"})) is None
    ends(store.adopt("b" * 12, config, "", 1.0), step_s=0.001)
    ends(own_run(store, config), step_s=0.0)
    assert measured_speed(store, config) == own
    ends(own_run(store, config), step_s=0.1)
    assert measured_speed(store, config) > own
