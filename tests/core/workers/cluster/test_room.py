"""Placement of runs on nodes with free resources, the bridge that may place them, and the files sent along."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments
from core.store import Status, Store
from core.store.liveness import liveness_of
from core.store.work import LOADING, WarmProcess
from core.workers.cluster.ray_cluster import models_of
from core.workers.cluster.ray_engine import RayEngine, Resources, fits, identity_of_settings, refusal
from core.workers.job_kinds import CLUSTER
from tests.core.views.test_back_translation import make_marian


def cores(count: float, gpus: float = 0.0) -> Resources:
    return Resources(count, gpus)


def on(*nodes: Resources) -> dict[str, Resources]:
    return {str(i): node for i, node in enumerate(nodes)}


def under_way(*runs: Resources) -> list[tuple[str | None, Resources]]:
    return [(None, run) for run in runs]


def test_a_run_needs_its_cores_on_one_node() -> None:
    nodes = on(cores(2), cores(2))
    assert fits(nodes, [], cores(2))
    assert fits(nodes, [("0", cores(2))], cores(2))
    assert not fits(nodes, [("0", cores(2)), ("1", cores(2))], cores(1))
    assert not fits(nodes, under_way(cores(1.5), cores(1.5)), cores(1))
    assert not fits({}, [], cores(1))


def test_runs_that_have_not_arrived_take_room() -> None:
    nodes = on(cores(1), cores(3))
    assert fits(nodes, under_way(cores(1), cores(2)), cores(1))
    assert not fits(nodes, under_way(cores(3), cores(1)), cores(1))
    assert not fits(nodes, under_way(cores(4)), cores(1))  # an earlier run waits for them


def test_what_ran_on_a_node_that_is_gone_takes_no_room() -> None:
    assert fits(on(cores(1)), [("gone", cores(1))], cores(1))


def test_two_runs_share_a_gpu_and_a_third_waits() -> None:
    nodes = on(cores(8), cores(8, gpus=1))
    half = cores(1, gpus=0.5)
    assert fits(nodes, under_way(half), half)
    assert not fits(nodes, under_way(half, half), half)
    assert fits(nodes, under_way(half, half), cores(8))


def test_ten_tenths_of_a_gpu_are_one() -> None:
    nodes, tenth = on(cores(16, gpus=1)), cores(1, gpus=0.1)
    assert fits(nodes, [("0", tenth)] * 9, tenth)
    assert not fits(nodes, [("0", tenth)] * 10, tenth)


def test_where_all_have_arrived_it_is_what_is_left_on_a_node() -> None:
    rng = random.Random(0)
    for _ in range(300):
        nodes = on(*(cores(rng.randint(1, 4)) for _ in range(3)))
        running = [(rng.choice(list(nodes)), cores(rng.randint(1, 2))) for _ in range(rng.randint(0, 3))]
        asked = cores(rng.randint(1, 4))
        left = [has.cpus - sum(run.cpus for at, run in running if at == name) for name, has in nodes.items()]
        assert fits(nodes, running, asked) == any(cpus >= asked.cpus for cpus in left)


@pytest.mark.parametrize(
    ("asked", "words"), [(cores(4), "4 CPU cores"), (cores(1, gpus=0.5), "1 CPU core and 0.5 GPUs"), (cores(2), None)]
)
def test_what_no_node_has_is_refused_with_what_there_is(asked: Resources, words: str | None) -> None:
    said = refusal([cores(2), cores(1)], asked)
    if words is None:
        assert said is None
    else:
        assert str(said) == (
            f"The run requests {words}, but no node of the cluster has as much (available: 1 CPU core, 2 CPU cores): "
            "request less."
        )
    assert "available: no node" in str(refusal([], asked))


@pytest.mark.parametrize("verb", ["submit", "resume", "resume an experiment"])
@pytest.mark.parametrize(("doing", "serves"), [("older settings", False), (LOADING, True), (None, True)])
def test_a_bridge_with_older_settings_is_deregistered_before_a_run_is_queued(
    store: Store, draft: Any, monkeypatch: pytest.MonkeyPatch, verb: str, doing: str | None, serves: bool
) -> None:
    """It polls the queue, so afterwards it could start the run first."""
    engine = RayEngine(store)
    monkeypatch.setattr(engine, "dispatch", lambda: None)
    run_id = engine.submit(draft())
    engine.stop(run_id)
    experiments = Experiments(engine)
    experiment_id = experiments.begin(Design(base=draft(), seeds=(5,)))
    claim = store.claim_next()
    assert claim is not None
    store.attempt(claim.id, claim.attempt).end(Status.STOPPED)
    store.name_warm_process(CLUSTER, WarmProcess(liveness_of(), doing or identity_of_settings()))
    seen = list[bool]()

    def look(do: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*given: Any) -> Any:
            seen.append(store.warm_process(CLUSTER) is not None)
            return do(*given)

        return looked

    for name in ("create", "requeue"):
        monkeypatch.setattr(store, name, look(getattr(store, name)))
    match verb:
        case "submit":
            engine.submit(draft())
        case "resume":
            engine.resume(run_id)
        case _:
            experiments.resume(experiment_id)
    assert seen == [serves]


@pytest.mark.parametrize("where", ["task", "view"])
def test_every_model_that_a_run_loads_goes_with_it(
    draft: Callable[..., RunConfig], tiny_encoder: Path, tmp_path: Path, where: str
) -> None:
    there, back = (str(make_marian(tmp_path / name, seed)) for seed, name in enumerate(("there", "back")))
    view = {"view": "back_translation", "forward": there, "backward": back}
    if where == "task":
        config = draft(task={"back_translation": 0.7, "translators": [there, back]})
    else:
        config = draft(objective={"terms": [{"loss": "supcon", "views": [view]}]})
    models = models_of(config)
    assert [*models] == [str(tiny_encoder), there, back]
    assert all({"config.json", "model.safetensors"} <= {*files} for files in models.values())


def test_a_run_that_translates_nothing_loads_its_encoder_alone(
    draft: Callable[..., RunConfig], tiny_encoder: Path
) -> None:
    assert [*models_of(draft())] == [str(tiny_encoder)]
