"""Runs on a real cluster whose nodes have separate root folders: requirements beyond the contract of engines."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

from core.errors import ConfigError
from core.store import RunRecord, Status, Store
from core.weight_files import weight_files
from core.workers import LocalEngine, build_engine
from core.workers.cluster.ray_engine import RayEngine
from core.workers.job_kinds import CLUSTER
from core.workers.processes import free_port
from tests.core.workers.conftest import end_warm_process
from tests.core.workers.following_runs import assert_equal_records, going, stop_runs, wait_until
from tests.ray_cluster import DemoCluster

pytestmark = pytest.mark.slow

LONG = 50_000


@pytest.fixture
def engine(ray_nodes: DemoCluster, ray_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayEngine]:
    monkeypatch.setenv("SCL_ENGINE", ray_nodes.address)
    made = build_engine(ray_store)
    assert isinstance(made, RayEngine)
    yield made
    stop_runs(made)


def node_of(run: RunRecord) -> str:
    """Return a node's name, the first word of a place."""
    assert run.place is not None
    return run.place.split()[0]


def test_a_run_goes_on_elsewhere_when_its_node_is_lost(engine: RayEngine, ray_nodes: DemoCluster, draft: Any) -> None:
    store = engine.store
    snapshots = {"checkpoint": {"every_steps": 20, "snapshot_steps": [20]}, "probe": {"frame_steps": [20, 60, 120]}}
    made = draft(steps=400, more=snapshots)
    whole, lost = engine.submit(made), engine.submit(made)
    assert wait_until(store, whole, lambda r: r.status.ended).status == Status.FINISHED
    assert node_of(store.run(whole)) == "two"
    wait_until(store, lost, lambda r: going(r, 70))
    began = store.run(lost)
    ray_nodes.kill("two")
    ray_nodes.add("three", 1)
    run = wait_until(store, lost, lambda r: r.status.ended)
    print(str(run.message), store.log_path(lost).read_text())
    assert (run.status, run.attempt, node_of(run)) == (Status.FINISHED, began.attempt + 1, "three")
    assert run.message is not None
    assert str(run.message).startswith(f"Node {began.place} was lost at step ")
    assert "The run continued elsewhere from step " in str(run.message)
    assert store.frame_steps(whole)
    assert_equal_records(store, lost, whole)
    predicted = store.predictions(lost), store.predictions(whole)
    assert predicted[0] is not None
    assert predicted[1] is not None
    np.testing.assert_array_equal(predicted[0].logits, predicted[1].logits)
    names = [{path.name for path in weight_files(store.run_folder(run_id))} for run_id in (lost, whole)]
    assert names[0] == names[1] == {"checkpoint.safetensors", "snapshot-0000020.safetensors"}
    for name in names[0]:
        mine, other = (load_file(store.run_folder(run_id) / name) for run_id in (lost, whole))
        assert mine.keys() == other.keys()
        assert all(np.array_equal(mine[part], other[part]) for part in mine)


def test_a_paused_run_stays_paused_when_its_node_is_lost(engine: RayEngine, ray_nodes: DemoCluster, draft: Any) -> None:
    store = engine.store
    run_id = engine.submit(draft(steps=LONG, more={"checkpoint": {"every_steps": 5}}))
    run = wait_until(store, run_id, lambda r: going(r, 10))
    engine.pause(run_id)
    wait_until(store, run_id, lambda r: r.status == Status.PAUSED)
    gone = node_of(run)
    ray_nodes.kill(gone)
    ray_nodes.add("four" if gone == "three" else "three", 1)
    run = wait_until(store, run_id, lambda r: r.attempt == 2 and r.place is not None and r.begun_attempt == 2)
    time.sleep(1.0)
    at = store.run(run_id).last_step
    time.sleep(1.0)
    assert (store.run(run_id).status, store.run(run_id).last_step) == (Status.PAUSED, at)
    engine.unpause(run_id)
    wait_until(store, run_id, lambda r: r.status == Status.RUNNING and going(r, at + 3))


def test_nodes_read_nothing_of_the_apps_disk(
    engine: RayEngine, ray_nodes: DemoCluster, draft: Any, tmp_path: Path
) -> None:
    store = engine.store
    given = draft(steps=LONG)
    mine = tmp_path / "encoder"
    shutil.copytree(given.encoder.id, mine)
    encoder = given.encoder.model_copy(update={"id": str(mine)})
    run_id = engine.submit(given.model_copy(update={"encoder": encoder}))
    wait_until(store, run_id, lambda r: going(r, 3))
    working = [process for process in psutil.process_iter() if _title(process).startswith("ray::run " + run_id)]
    assert len(working) == 1
    (process,) = working
    files = [*process.open_files(), *process.memory_maps()]
    touched = [process.cwd(), *(file.path for file in files)]
    for kept in (store.folder, mine):
        assert not [path for path in touched if path.startswith(str(kept))]
    # Its code was unpacked below the root folder of its own node.
    assert process.cwd().startswith(str(ray_nodes.folder / node_of(store.run(run_id))))


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_a_run_that_waits_for_room_can_be_stopped(engine: RayEngine, draft: Any) -> None:
    first, second = engine.submit(draft(steps=LONG)), engine.submit(draft(steps=LONG))
    wait_until(engine.store, first, going)
    assert engine.store.run(second).status == Status.QUEUED
    engine.stop(second)
    assert engine.store.run(second).status == Status.STOPPED


def test_what_no_node_has_is_refused(engine: RayEngine, draft: Any) -> None:
    run_id = engine.submit(draft(more={"resources": {"cpus": 64, "gpus": 0.5}}))
    run = wait_until(engine.store, run_id, lambda r: r.status.ended)
    assert run.status == Status.FAILED
    assert run.message is not None
    assert str(run.message).startswith(
        "The run requests 64 CPU cores and 0.5 GPUs, but no node of the cluster has as much"
    )
    after = engine.submit(draft())
    wait_until(engine.store, after, lambda r: r.status == Status.FINISHED)


def test_what_a_run_asks_for_is_in_its_config_and_changes_no_hash(engine: RayEngine, draft: Any) -> None:
    config, _ = engine.prepared(draft())
    assert (config.resources.cpus, config.resources.gpus) == (1.0, 0.0)
    run_id = engine.submit(draft(more={"seed": 77}))
    wait_until(engine.store, run_id, lambda r: r.status == Status.FINISHED)
    local, _ = LocalEngine(engine.store).prepared(draft(more={"seed": 77}))
    assert local.resources.cpus is None
    assert engine.store.same_as(local) == run_id


def test_a_cluster_that_does_not_answer_is_named_on_the_runs_that_wait(
    store: Store, draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("SCL_ENGINE", address)
    engine = build_engine(store)
    run_id = engine.submit(draft())
    try:
        run = wait_until(store, run_id, lambda r: r.message is not None)
    finally:
        end_warm_process(store, CLUSTER)
    assert run.status == Status.QUEUED
    assert str(run.message) == f"The Ray cluster at {address} does not answer (Connection refused)."


def test_without_ray_the_setting_says_how_to_get_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCL_ENGINE", "head:6379")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="requirements-ray"):
        build_engine(store)
