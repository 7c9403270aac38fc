"""The contract of engines, for every way of starting a worker. Real processes are really killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors import safe_open

from core.config import parse_config
from core.errors import PlaygroundError
from core.store import ExperimentTable, Status, Store, rows_path
from core.store.work import LOADING, RUNS
from core.workers import Engine, LocalEngine, failures, run_worker
from core.workers.cluster.ray_engine import RayEngine
from tests.cases import slow_but
from tests.core.workers.conftest import end_warm_process
from tests.core.workers.following_runs import assert_equal_records, curve, going, stop_runs, wait_until
from tests.core.workers.watching import wait_for

ROOT = Path(__file__).resolve().parents[3]
START_S, END_S = 40.0, 20.0
LONG = 50_000


def is_warm(store: Store) -> bool:
    process = store.warm_process(RUNS)
    return process is not None and process.alive and process.doing != LOADING


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(tmp_path_factory.mktemp("engine") / "runs")
    yield store
    for run in store.runs():
        worker = worker_of(store, run.id)
        if worker is not None:
            worker.kill()
    end_warm_process(store, RUNS)


@pytest.fixture(scope="module")
def warm_process(shared_store: Store) -> None:
    LocalEngine(shared_store).warm_up()
    wait_for(lambda: is_warm(shared_store), START_S)


# Starting a process per run, or a cluster, takes seconds. The default tests cover only the warm process, `make
# test-slow` covers all three.
@pytest.fixture(params=slow_but(["warm"], ["spawn", "warm", "ray"]))
def engine(
    request: pytest.FixtureRequest, shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalEngine | RayEngine]:
    made: LocalEngine | RayEngine
    if request.param == "ray":
        monkeypatch.setenv("SCL_ENGINE", request.getfixturevalue("ray_nodes").address)
        made = RayEngine(request.getfixturevalue("ray_store"))
    else:
        if request.param == "warm":
            request.getfixturevalue("warm_process")
            assert is_warm(shared_store), "the warm process went away"
        made = LocalEngine(shared_store, slots=range(1), forks=request.param == "warm")
    yield made
    stop_runs(made)


# Workers of this machine execute a run by the same function, however they start. On a cluster, the bridge passes
# controls and files on.
START_DOES_NOT_MATTER = pytest.mark.parametrize("engine", slow_but(["warm"], ["warm", "ray"]), indirect=True)


def worker_of(store: Store, run_id: str) -> psutil.Process | None:
    text = store._row(run_id)["worker"]
    if not text:
        return None
    try:
        return psutil.Process(json.loads(text)["pid"])
    except psutil.NoSuchProcess:
        return None


def test_a_submitted_run_finishes_with_curves_frames_and_scores(engine: Engine, draft: Any) -> None:
    run_id = engine.submit(draft())
    run = wait_until(engine.store, run_id, lambda r: r.status.ended)
    assert (run.status, run.last_step, run.device) == (Status.FINISHED, 8, "cpu")
    assert len(engine.store.steps(run_id)) == 8
    assert engine.store.frame_steps(run_id) == list(run.config.probe.frame_steps or ())
    assert {e.split for e in engine.store.evaluations(run_id)} == {"validation", "baseline", "baseline_test", "test"}
    assert run.probe is not None
    assert len(run.probe.texts) == len(engine.store.map_points(run_id, 8))
    assert engine.store.log_path(run_id).exists()


def test_a_worker_has_its_own_session_stops_within_two_seconds_and_resumes(engine: Engine, draft: Any) -> None:
    run_id = engine.submit(draft(steps=LONG))
    wait_until(engine.store, run_id, lambda r: going(r, 5))
    worker = worker_of(engine.store, run_id)
    assert worker is not None
    assert os.getsid(worker.pid) == worker.pid
    if not isinstance(engine, RayEngine):  # with Ray the worker is the bridge, which has its own log
        targets = {os.readlink(f"/proc/{worker.pid}/fd/{fd}") for fd in (1, 2)}
        assert targets == {str(engine.store.log_path(run_id))}
    asked = time.monotonic()
    engine.stop(run_id)
    wait_until(engine.store, run_id, lambda r: r.status in (Status.STOPPING, Status.STOPPED))
    assert time.monotonic() - asked < 2.0
    stopped = wait_until(engine.store, run_id, lambda r: r.status.ended)
    assert stopped.status == Status.STOPPED
    assert stopped.checkpoint_step == stopped.last_step
    engine.resume(run_id)
    wait_until(engine.store, run_id, lambda r: going(r, stopped.last_step + 3))


@START_DOES_NOT_MATTER
def test_a_paused_run_takes_no_step_until_it_goes_on_and_can_be_stopped(engine: Engine, draft: Any) -> None:
    run_id = engine.submit(draft(steps=LONG))
    wait_until(engine.store, run_id, going)
    engine.pause(run_id)
    wait_until(engine.store, run_id, lambda r: r.status == Status.PAUSED)
    time.sleep(0.3)
    before = engine.store.run(run_id).last_step
    time.sleep(0.4)
    assert engine.store.run(run_id).last_step == before
    engine.unpause(run_id)
    wait_until(engine.store, run_id, lambda r: r.status == Status.RUNNING and going(r, before + 2))
    engine.pause(run_id)
    wait_until(engine.store, run_id, lambda r: r.status == Status.PAUSED)
    engine.stop(run_id)
    assert wait_until(engine.store, run_id, lambda r: r.status.ended).status == Status.STOPPED


@START_DOES_NOT_MATTER
def test_a_turned_knob_is_used_and_recorded(engine: Engine, draft: Any) -> None:
    run_id = engine.submit(draft(steps=LONG))
    wait_until(engine.store, run_id, going)
    engine.turn(run_id, "lambda", 0.25)
    wait_until(engine.store, run_id, lambda _: bool(engine.store.knob_turns(run_id)))
    (turn,) = engine.store.knob_turns(run_id)
    wait_until(engine.store, run_id, lambda r: going(r, turn.step))
    values = {s.step: s.values["lambda"] for s in engine.store.steps(run_id)}
    assert (values[turn.step - 1], values[turn.step]) == (0.9, 0.25)


@pytest.mark.parametrize("engine", ["warm"], indirect=True)
def test_a_run_of_two_phases_takes_a_knob_of_a_term_and_resumes_in_its_second_phase(engine: Engine, draft: Any) -> None:
    contrast = {"terms": [{"loss": "simcse", "views": [{"view": "dropout"}]}]}
    terms = [{"loss": "cross_entropy"}, {"loss": "supcon", "queue": 16}, {"loss": "supcon", "layers": [1]}]
    phases = [
        {"steps": 6, "batch_size": 8, "objective": contrast},
        {"steps": LONG, "batch_size": 8, "objective": {"terms": terms, "combine": "additive"}},
    ]
    run_id = engine.submit(draft(more={"phases": phases}))
    wait_until(engine.store, run_id, lambda r: going(r, 8))
    with pytest.raises(PlaygroundError, match="temperature"):
        engine.turn(run_id, "temperature", 0.5)  # this knob belonged to the first phase
    engine.turn(run_id, "supcon_2.temperature", 0.5)
    wait_until(engine.store, run_id, lambda _: bool(engine.store.knob_turns(run_id)))
    (turn,) = engine.store.knob_turns(run_id)
    assert (turn.name, turn.value) == ("supcon_2.temperature", 0.5)
    engine.stop(run_id)
    stopped = wait_until(engine.store, run_id, lambda r: r.status.ended)
    assert stopped.status == Status.STOPPED
    engine.resume(run_id)
    wait_until(engine.store, run_id, lambda r: going(r, stopped.last_step + 2))
    values = {step.step: step.values for step in engine.store.steps(run_id)}
    assert list(values) == list(range(1, len(values) + 1))
    for step, reported in values.items():
        losses = {name for name in reported if name.startswith("loss.")}
        expected = {"loss.simcse"} if step <= 6 else {"loss.cross_entropy", "loss.supcon", "loss.supcon_2"}
        assert (reported["phase"], losses) == (1 if step <= 6 else 2, expected)


def test_a_killed_worker_reads_interrupted_and_resumes_on_the_same_curve(engine: Engine, draft: Any) -> None:
    made = draft(steps=120, more={"checkpoint": {"every_steps": 20}, "probe": {"frame_steps": [30, 60]}})
    whole = engine.submit(made)
    wait_until(engine.store, whole, lambda r: r.status == Status.FINISHED)
    killed = engine.submit(made)
    wait_until(engine.store, killed, lambda r: going(r, 45))
    worker = worker_of(engine.store, killed)
    assert worker is not None
    worker.kill()
    asked = time.monotonic()
    run = wait_until(engine.store, killed, lambda r: r.status == Status.INTERRUPTED)
    assert time.monotonic() - asked < 10
    assert run.last_step < 120
    engine.resume(killed)
    wait_until(engine.store, killed, lambda r: r.status == Status.FINISHED)
    assert engine.store.run(killed).attempt == 2
    assert engine.store.frame_steps(whole)
    assert_equal_records(engine.store, killed, whole)


def test_a_failed_run_says_why_and_lets_the_next_one_start(
    engine: Engine, draft: Any, small_csv: Path, tmp_path: Path
) -> None:
    """Submit three runs at once for one slot. Each worker starts the next run."""
    path = tmp_path / "rows.csv"
    path.write_bytes(small_csv.read_bytes())
    blocker = engine.submit(draft(steps=100))
    failing = engine.submit(draft(task={"path": str(path)}))
    following = engine.submit(draft())
    assert engine.store.run(following).status == Status.QUEUED
    path.write_text("text,label\nother rows,a\nmore,b\nand more,a\nagain,b\nlast,a\nreally,b\nyes,a\nno,b\n")
    content_hash = engine.store.run(failing).config.task.content_hash
    assert content_hash is not None
    rows_path(engine.store.folder, content_hash).write_bytes(b"damaged")  # otherwise it would read the stored rows
    run = wait_until(engine.store, failing, lambda r: r.status.ended)
    assert run.status == Status.FAILED
    assert str(run.message)
    assert "rows.csv" in str(run.message)
    wait_until(engine.store, following, lambda r: r.status == Status.FINISHED)
    assert engine.store.run(blocker).status == Status.FINISHED


def test_a_run_outlives_the_process_that_submitted_it(engine: Engine, draft: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(draft(steps=200).to_json())
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from core.config import parse_config\n"
        "from core.workers import build_engine\n"
        "from core.store import Store\n"
        "draft = parse_config(Path(sys.argv[2]).read_text())\n"
        "print(build_engine(Store(sys.argv[1])).submit(draft), flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(engine.store.folder), str(config)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as submitter:
        assert submitter.stdout is not None
        run_id = submitter.stdout.readline().strip()
        wait_until(engine.store, run_id, going)
        submitter.kill()
        submitter.wait()
    assert wait_until(engine.store, run_id, lambda r: r.status.ended).status == Status.FINISHED


def test_two_servers_never_start_a_run_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(LocalEngine, "_spawn", lambda _, claim: started.append(claim.id))
    config = parse_config({"phases": [{"steps": 1}]})
    ids = [store.create(config) for _ in range(60)]
    engines = [LocalEngine(Store(store.folder), slots=range(60)) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(LocalEngine.dispatch, engines))
    assert sorted(started) == sorted(ids)


def test_out_of_memory_offers_a_smaller_batch() -> None:
    of_onednn = ("could not create a primitive", "could not execute a primitive", "std::bad_alloc")
    messages = map(RuntimeError, ("can't allocate memory: x", *of_onednn))
    for error in (torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), *messages):
        assert "try a batch of 8" in str(failures.plain_failure(error, 16)), error
    unsupported = RuntimeError("could not create a primitive descriptor for a matmul primitive")
    assert "unexpected RuntimeError" in str(failures.plain_failure(unsupported, 16))
    assert "train fewer blocks" in str(failures.plain_failure(MemoryError(), 1))
    assert "unexpected ZeroDivisionError" in str(failures.plain_failure(ZeroDivisionError("x"), 16))


def files_of(store: Store, run_id: str) -> list[Path]:
    folder = store.run_folder(run_id)
    return [*folder.glob("checkpoint.*"), *folder.glob("snapshot-*")]


@START_DOES_NOT_MATTER
def test_finished_weights_are_halved_before_the_run_reads_finished(engine: Engine, draft: Any) -> None:
    run_id = engine.submit(draft(more={"checkpoint": {"snapshot_steps": [2]}, "probe": {"frame_steps": [2]}}))
    wait_until(engine.store, run_id, lambda r: r.status == Status.FINISHED)
    paths = files_of(engine.store, run_id)
    assert len(paths) == 2
    for path in paths:
        with safe_open(path, "np") as file:
            assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118
    log = engine.store.log_path(run_id).read_text()
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_run_that_ends_makes_room_and_one_that_begins_without_says_so(
    engine: Engine, draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current settings of the submitting process apply, not those of the older warm process."""
    first = engine.submit(draft(steps=50))
    wait_until(engine.store, first, going)
    starter = worker_of(engine.store, first)
    wait_until(engine.store, first, lambda r: r.status == Status.FINISHED)
    assert files_of(engine.store, first)
    if starter is not None and not isinstance(engine, RayEngine):
        starter.wait(END_S)  # else it may start the next run, with the previous disk budget
    monkeypatch.setenv("SCL_DISK_GB", "1e-6")
    second = engine.submit(draft())
    wait_until(engine.store, second, lambda r: r.status.ended or r.last_step > 0)
    worker = worker_of(engine.store, second)
    run = wait_until(engine.store, second, lambda r: r.weights_dropped_at is not None)
    assert run.status == Status.FINISHED
    # The record changes first, then the files are deleted.
    wait_for(lambda: files_of(engine.store, first) == files_of(engine.store, second) == [])
    assert engine.store.run(first).weights_dropped_at is not None
    assert engine.store.run(first).dropped_gb == 1e-6
    assert run.message is not None
    assert str(run.message).startswith("When this run started: Runs use")
    assert len(engine.store.frame_steps(first)) == len(list(engine.store.run_folder(first).glob("frame-*")))
    if worker is not None and not isinstance(engine, RayEngine):
        worker.wait(END_S)  # else it may start the next test's run, with this disk budget


@pytest.mark.slow
def test_runs_of_an_experiment_follow_each_other_in_one_process_and_a_person_s_does_not(
    store: Store, draft: Any
) -> None:
    engine = LocalEngine(store, slots=range(1), forks=False)
    experiment = ExperimentTable(store.folder).create("many", "{}")
    ids = []
    for seed in range(3):
        config, data = engine.prepared(draft(steps=100, more={"seed": seed}))
        ids.append(engine.queue(config, data, (experiment, 0, seed)))
    pids = dict[str, int]()
    engine.dispatch()
    alone = ""
    deadline = time.monotonic() + 2.5 * (START_S + END_S)
    while not all(run.status.ended for run in store.runs()):
        assert time.monotonic() < deadline
        for run in store.runs():
            if run.status == Status.RUNNING and (worker := worker_of(store, run.id)) is not None:
                pids[run.id] = worker.pid
                alone = alone or engine.submit(draft(steps=30))  # goes first, and in a separate process
        time.sleep(0.005)
    assert {run.status for run in store.runs()} == {Status.FINISHED}
    assert pids[alone] not in {pids[run_id] for run_id in ids}
    assert pids[ids[1]] == pids[ids[2]] != pids[ids[0]]
    for run_id in (*ids, alone):
        assert len(store.steps(run_id)) == store.run(run_id).steps
        assert "Traceback" not in store.log_path(run_id).read_text()
    # Each run learns as it would alone.
    again = engine.submit(draft(steps=100, more={"seed": 2, "name": "alone"}))
    wait_until(store, again, lambda r: r.status == Status.FINISHED)
    assert curve(store, again) == curve(store, ids[2])


@pytest.mark.parametrize(("stamps", "most_runs"), [("aabb", 50), ("aaaa", 2)], ids=["edited code", "many runs"])
def test_a_process_leaves_the_next_run_to_another(
    stamps: str, most_runs: int, store: Store, draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cover two reasons: the code on disk changed after the second run, or libraries may have leaked memory."""
    monkeypatch.setattr(LocalEngine, "dispatch", lambda _: None)
    monkeypatch.setattr(run_worker, "code_stamp", iter(stamps).__next__)
    monkeypatch.setattr(run_worker, "MOST_RUNS", most_runs)
    engine = LocalEngine(store, slots=range(1))
    experiment = ExperimentTable(store.folder).create("many", "{}")
    ids = [engine.queue(*engine.prepared(draft(more={"seed": seed})), (experiment, 0, seed)) for seed in range(3)]
    claim = store.claim_next(range(1))
    assert claim is not None
    run_worker.work(store.folder, claim)
    assert [store.run(run_id).status for run_id in ids] == [Status.FINISHED, Status.FINISHED, Status.QUEUED]
