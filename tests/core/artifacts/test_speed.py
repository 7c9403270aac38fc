"""Whose speed a run is expected to have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.artifacts.speed import measured_speed
from core.config import RunConfig
from core.events import Step
from core.store import Status, Store
from core.store.attempt import Attempt


def ends(attempt: Attempt, step_s: float) -> None:
    """A run of ten steps, each of which took this many seconds."""
    attempt.steps([Step(number, {"loss": 1.0, "tokens": 100.0, "step_s": step_s}) for number in range(1, 11)])
    attempt.end(Status.FINISHED)


@pytest.fixture
def claimed(store: Store, draft: Callable[..., RunConfig]) -> Callable[[], Attempt]:
    def make() -> Attempt:
        run_id = store.create(draft(steps=10))
        claim = store.claim_next(range(100))
        assert claim is not None
        attempt = store.attempt(run_id, claim[1])
        attempt.register()
        return attempt

    return make


def test_a_run_from_elsewhere_says_nothing_of_this_machine(
    store: Store, draft: Callable[..., RunConfig], claimed: Callable[[], Attempt]
) -> None:
    config = draft(steps=10)
    ends(store.adopt("a" * 12, config, "", 1.0), step_s=0.001)
    assert measured_speed(store, config) is None
    ends(claimed(), step_s=0.2)
    own = measured_speed(store, config)
    assert own is not None
    ends(store.adopt("b" * 12, config, "", 1.0), step_s=0.001)
    assert measured_speed(store, config) == own


def test_a_run_on_other_hardware_says_nothing_of_this_one(
    store: Store, draft: Callable[..., RunConfig], claimed: Callable[[], Attempt]
) -> None:
    ends(claimed(), step_s=0.001)
    config = draft(steps=10)
    assert measured_speed(store, config) is not None
    assert measured_speed(store, config.model_copy(update={"device": "auto"})) is None


def test_a_run_that_measured_nothing_is_passed_over(
    store: Store, draft: Callable[..., RunConfig], claimed: Callable[[], Attempt]
) -> None:
    ends(claimed(), step_s=0.2)
    own = measured_speed(store, draft(steps=10))
    ends(claimed(), step_s=0.0)
    assert measured_speed(store, draft(steps=10)) == own is not None
