"""ASHA, against a literal implementation, and real runs of an experiment that end early."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest

from core.config import RunConfig, parse_config
from core.events import Evaluation
from core.experiments.design import Design, axis_of
from core.experiments.lifecycle import Experiments, is_complete, is_over
from core.store import ExperimentTable, Status, Store
from core.workers import LocalEngine
from core.workers.early_stopping import is_poor, reason_to_end
from core.workers.recorder import Recorder
from tests.core.store.claims import claimed
from tests.core.workers.watching import wait_for

Curves = dict[str, list[tuple[int, float]]]


def rungs(grace: int, reduction: int, steps: int) -> list[int]:
    found = [grace]
    while found[-1] * reduction <= steps:
        found.append(found[-1] * reduction)
    return found


def poor_by_hand(run_id: str, curves: Curves, grace: int, reduction: int, steps: int) -> bool:
    """Apply algorithm 2 literally: compare a run at its newest rung with the best 1 in η there."""
    at_rung: dict[int, dict[str, float]] = {rung: {} for rung in rungs(grace, reduction, steps)}
    for name, curve in curves.items():
        for step, score in curve:
            newest = 0
            # A score counts at the highest rung that the run has newly reached.
            for rung in sorted(at_rung, reverse=True):
                if rung <= step and name not in at_rung[rung]:
                    at_rung[rung][name], newest = score, rung
                    break
        if name == run_id:
            mine = newest
    others = [score for name, score in at_rung.get(mine, {}).items() if name != run_id]
    return bool(others) and at_rung[mine][run_id] < np.percentile(others, 100 * (1 - 1 / reduction))


def test_it_is_the_published_rule() -> None:
    rng, differed = random.Random(0), 0
    for _ in range(300):
        grace, reduction, steps = rng.choice([2, 5]), rng.choice([2, 3, 4]), rng.choice([20, 60])
        at = [step for step in rungs(grace, reduction, steps) if step < steps]
        curves: Curves = {
            f"r{i}": [(step, rng.random()) for step in at[: rng.randint(1, len(at))]] for i in range(rng.randint(1, 8))
        }
        expected = poor_by_hand("r0", curves, grace, reduction, steps)
        differed += expected
        assert is_poor("r0", curves, grace_steps=grace, reduction=reduction, steps=steps) is bool(expected)
    assert 50 < differed < 250  # both answers occur


RULE = {"grace_steps": 4, "reduction": 2}


@pytest.fixture
def table(store: Store) -> ExperimentTable:
    return ExperimentTable(store.folder)


def test_the_last_of_many_ends_and_the_first_goes_on(store: Store, table: ExperimentTable) -> None:
    experiment = table.create("search", json.dumps({"early_stopping": RULE}))
    ids = [going_run(store, experiment, seed) for seed in range(4)]
    for run_id, score in zip(ids, (0.9, 0.8, 0.7, 0.2), strict=True):
        Recorder(store, store.attempt(run_id, 1)).record(Evaluation(4, "validation", {"accuracy": score}))
    by_run = {run.run_id: run for run in table.runs(experiment)}
    # Each score is below the median of the others at that moment: 0.8 below {0.9}, 0.7 below {0.9, 0.8}, and so on.
    assert [by_run[run_id].ended_early for run_id in ids] == [False, True, True, True]
    asked = [[control.kind for control in store.attempt(run_id, 1).take_controls()] for run_id in ids]
    assert asked == [[], ["stop"], ["stop"], ["stop"]]
    message = str(store.run(ids[3]).message)
    assert message == (
        "Ended early at step 4: its validation accuracy was not in the best 1/2 of the 4 runs that had reached "
        "this step (ASHA)."
    )
    assert not by_run[ids[3]].may_go_on


def test_the_last_step_and_other_splits_end_nothing(store: Store, table: ExperimentTable) -> None:
    experiment = table.create("search", json.dumps({"early_stopping": RULE}))
    first, second = (going_run(store, experiment, seed) for seed in range(2))
    Recorder(store, store.attempt(first, 1)).record(Evaluation(10, "validation", {"accuracy": 0.9}))
    record = Recorder(store, store.attempt(second, 1)).record
    record(Evaluation(0, "validation", {"accuracy": 0.1}))
    record(Evaluation(4, "baseline", {"accuracy": 0.1}))
    record(Evaluation(10, "validation", {"accuracy": 0.1}))
    assert not any(run.ended_early for run in table.runs(experiment))


@pytest.mark.parametrize("other", ["whole", "stopped", "none"])
def test_a_run_that_another_experiment_needs_whole_goes_on(other: str, store: Store, table: ExperimentTable) -> None:
    experiment = table.create("search", json.dumps({"early_stopping": RULE}))
    good, poor = (going_run(store, experiment, seed) for seed in range(2))
    if other != "none":
        second = table.create("whole", "{}")
        table.put_run(second, 0, 1, poor)
        table.set_wanted(second, other == "whole")
    store.attempt(good, 1).evaluation(4, "validation", {"accuracy": 0.9})
    store.attempt(poor, 1).evaluation(4, "validation", {"accuracy": 0.1})
    assert (reason_to_end(store, poor, 4, 10) is None) is (other == "whole")


def going_run(store: Store, experiment: str, seed: int) -> str:
    return claimed(store, parse_config({"phases": [{"steps": 10}], "seed": seed}), (experiment, 0, seed)).run_id


@pytest.mark.slow
def test_a_poor_run_really_ends_and_is_not_begun_again(store: Store, draft: Callable[..., RunConfig]) -> None:
    base = draft(steps=2_000).model_dump(mode="json") | {"probe": {"frame_steps": []}}
    rates = axis_of("optimiser.learning_rate", [0.01, 1e-7])
    looks = {"grace_steps": 100, "reduction": 3}
    design = Design.model_validate({"base": base, "axes": [rates.model_dump()], "early_stopping": looks})
    assert design.draft(design.cells[0], 0).probe.frame_steps == (100, 300, 900)
    engine = LocalEngine(store, slots=range(1))
    experiments = Experiments(engine)
    experiment = experiments.table.create("search", design.to_json())
    # Another run predicted everything correctly at its check.
    good = store.attempt(going_run(store, experiment, seed=0), 1)
    good.evaluation(100, "validation", {"accuracy": 1.0})
    good.end(Status.FINISHED)
    poor = engine.queue(*engine.prepared(design.draft(design.cells[1], 0)), (experiment, 1, 0))
    engine.dispatch()
    wait_for(lambda: is_over(design, experiments.table.runs(experiment)))
    runs, found = experiments.table.runs(experiment), store.run(poor)
    assert found.status == Status.STOPPED
    assert 100 <= found.last_step < 2_000
    assert str(found.message).startswith("Ended early at step 100: ")
    assert [run.ended_early for run in runs] == [False, True]
    assert is_complete(design, runs)
    experiments.resume(experiment)
    assert store.run(poor).status == Status.STOPPED
