"""The momentum of a queue follows from the steps, unless a person chose it."""

from __future__ import annotations

from typing import Any

import pytest

from core.advice.momentum import LARGEST, momentum_of, slow_queues
from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.errors import ConfigError
from core.events import Notice
from core.parameters import AUTO
from core.training.loop import train
from tests.cases import each
from tests.core.training.made import Draft


def queued(**settings: Any) -> dict[str, Any]:
    terms = [{"loss": "cross_entropy"}, {"loss": "supcon", "queue": 16} | settings]
    return {"terms": terms, "combine": "additive"}


def momentum_in(config: RunConfig, number: int = 0) -> object:
    return config.phases[number].objective.terms[1].parameters["momentum"]


@each("steps", [1, 2, 5, 10, 11, 20, 60, 120, 500, 2_302, 9_999, 10_000, 1_000_000])
def test_by_default_no_more_than_a_tenth_of_the_start_is_left(steps: int) -> None:
    momentum = momentum_of(steps)
    assert 0 <= momentum <= LARGEST
    assert momentum**steps <= 0.1
    assert momentum == round(momentum, 3)


def test_long_runs_have_the_momentum_of_moco_and_shorter_ones_less() -> None:
    assert momentum_of(10_000) == momentum_of(300_000) == 0.999
    assert [momentum_of(steps) for steps in (10, 20, 120, 1000)] == [0.0, 0.5, 0.916, 0.99]


def test_a_prepared_run_says_the_number(draft: Draft) -> None:
    config, _ = prepare(draft(objective=queued(), steps=120), gpu=False)
    assert momentum_in(config) == momentum_of(120)
    assert prepare(config, gpu=False)[0] == config
    assert parse_config(config.to_json()) == config


def test_each_phase_has_its_own(draft: Draft) -> None:
    phases = [{"objective": queued(), "steps": steps, "batch_size": 8} for steps in (40, 200)]
    config, _ = prepare(draft(more={"phases": phases}), gpu=False)
    assert [momentum_in(config, number) for number in (0, 1)] == [momentum_of(40), momentum_of(200)]


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.999])
def test_a_number_that_was_chosen_stays(draft: Draft, momentum: float) -> None:
    config, _ = prepare(draft(objective=queued(momentum=momentum)), gpu=False)
    assert momentum_in(config) == momentum


def test_without_a_queue_there_is_nothing_to_say(draft: Draft) -> None:
    config, _ = prepare(draft(objective=queued(queue=0)), gpu=False)
    assert momentum_in(config) == AUTO
    assert slow_queues(config.phases[0]) == ()


@each("given", ["Auto", "fast", True, None, 1.0, -0.1])
def test_what_is_neither_auto_nor_a_momentum_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="from 0 and below 1 or auto"):
        parse_config({"phases": [{"objective": queued(momentum=given)}]})


@pytest.mark.parametrize(("momentum", "steps", "slow"), [(0.999, 120, True), (0.999, 2302, False), (0.98, 120, False)])
def test_a_queue_that_stays_where_it_began_is_said_so(draft: Draft, momentum: float, steps: int, slow: bool) -> None:
    config, _ = prepare(draft(objective=queued(momentum=momentum), steps=steps), gpu=False)
    found = slow_queues(config.phases[0])
    assert len(found) == slow
    assert not slow or "88.7% of its copy" in str(found[0])


def test_the_run_says_it_too(draft: Draft) -> None:
    for momentum, said in ((0.999, 1), (AUTO, 0)):
        config, data = prepare(draft(objective=queued(momentum=momentum), steps=3), gpu=False)
        notices = [str(event.message) for event in train(config, data) if isinstance(event, Notice)]
        assert sum("The queue of SCL lags behind" in message for message in notices) == said
    unweighted = queued(momentum=0.999, weight=0.0)
    assert slow_queues(prepare(draft(objective=unweighted), gpu=False)[0].phases[0]) == ()
