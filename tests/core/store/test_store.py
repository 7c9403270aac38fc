"""The store: records, refusals, and failures of a disk or a file."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from core.config import KnobTurn, parse_config
from core.errors import ConfigError, EngineError, RunNotFoundError, StaleAttemptError, StoreError
from core.events import Frame, Predictions, Probe, Started, Step, Tokens, TokenText, Word
from core.representation.projections import pca_map
from core.store import Liveness, Status, Store, database, liveness
from core.store.attempt import Attempt
from core.store.budget import keep_within
from core.store.database import MIGRATIONS
from core.store.liveness import is_alive, liveness_of
from core.store.work import Claim
from tests.core.store.claims import DEAD, claimed, config

SLOTS = range(1)
PROBE = Probe((0, 1, 2), ("one", "two <b>", "three"), (0, 1, 0), ("no", "yes"))


def started(step: int = 0) -> Started:
    return Started(step, 9, "cpu", PROBE, {"majority_rate": 0.5})


def frame(step: int) -> Frame:
    rng = np.random.default_rng(step)
    return Frame(step, rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(3, 2)).astype(np.float32))


def add_frame(attempt: Attempt, step: int) -> Frame:
    made = frame(step)
    attempt.frame(made, pca_map(made.embeddings))
    return made


def test_another_store_object_reads_what_the_first_wrote(store: Store) -> None:
    attempt = claimed(store)
    attempt.record_start(started())
    attempt.steps([Step(1, {"loss": 1.5}), Step(2, {"loss": 1.25})])
    attempt.evaluation(2, "validation", {"accuracy": 0.5})
    other = Store(store.folder)
    assert [s.values["loss"] for s in other.steps(attempt.run_id)] == [1.5, 1.25]
    assert [s.step for s in other.steps(attempt.run_id, after=1)] == [2]
    assert other.evaluations(attempt.run_id)[0].values == {"accuracy": 0.5}
    assert other.last_scores() == {attempt.run_id: other.evaluations(attempt.run_id)}
    assert other.run(attempt.run_id).probe == PROBE
    other.close()


def test_the_newest_steps_have_the_times_at_which_they_were_recorded(store: Store) -> None:
    attempt, before = claimed(store), time.time()
    for step in (1, 2, 3):
        attempt.steps([Step(step, {"loss": 1.0})])
    times = store.newest_times(attempt.run_id, 2)
    assert list(times) == [2, 3]
    assert before <= times[2] <= times[3] <= time.time()
    assert store.newest_times("none", 5) == {}


def test_a_worker_waits_longer_than_a_page_for_a_locked_database(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    patient, impatient = Store(store.folder, busy_timeout_s=30), Store(store.folder)
    locked = threading.Event()

    def lock() -> None:
        with Store(store.folder).transaction():
            locked.set()
            time.sleep(0.5)

    holder = threading.Thread(target=lock)
    holder.start()
    assert locked.wait(10)
    with pytest.raises(StoreError, match="Another process is changing the runs folder"):
        impatient.create(config())
    run_id = patient.create(config())
    holder.join()
    assert [run.id for run in store.runs()] == [run_id]


def test_wal_mode_is_on_and_migrations_are_recorded_once(store: Store) -> None:
    Store(store.folder).close()
    connection = sqlite3.connect(store.folder / "runs.sqlite3")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("SELECT count(*) FROM _sqlite_migrations").fetchone() == (MIGRATIONS,)
    connection.close()


def test_a_store_that_is_current_is_opened_without_the_library_of_migrations(store: Store) -> None:
    program = (
        "import sys; from core.store import Store; Store(sys.argv[1]).runs(); print('sqlite_utils' in sys.modules)"
    )
    for folder, loaded in ((store.folder, "False"), (store.folder / "new", "True")):
        done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == loaded


def set_back(store: Store, run_id: str, seconds: float, **columns: object) -> None:
    """Backdate the start of a run's work by `seconds`, and set columns of its work row."""
    with closing(sqlite3.connect(store.folder / "runs.sqlite3")) as database:
        database.execute("UPDATE runs SET working_since = ? WHERE id = ?", (time.time() - seconds, run_id))
        for name, value in columns.items():
            database.execute(f"UPDATE work SET {name} = ? WHERE id = ?", (value, run_id))
        database.commit()


def test_neither_a_pause_nor_the_time_between_attempts_counts_as_work(store: Store) -> None:
    attempt = claimed(store)
    run_id = attempt.run_id
    assert store.run(run_id).elapsed_s == 0
    attempt.record_start(started())
    set_back(store, run_id, 100)
    assert store.run(run_id).elapsed_s == pytest.approx(100, abs=5)
    store.send(run_id, "pause")
    attempt.take_controls()
    assert store.run(run_id).working_since is None
    assert store.run(run_id).elapsed_s == pytest.approx(100, abs=5)
    store.send(run_id, "resume")
    attempt.take_controls()
    set_back(store, run_id, 50)
    assert store.run(run_id).elapsed_s == pytest.approx(150, abs=5)
    # The worker dies 20 seconds later, and no process checks for a while.
    set_back(store, run_id, 80, worker=json.dumps(asdict(DEAD)), heartbeat_at=time.time() - 60)
    assert store.run(run_id).status == Status.INTERRUPTED
    assert store.run(run_id).elapsed_s == pytest.approx(120, abs=5)
    store.requeue(run_id)
    assert store.run(run_id).elapsed_s == pytest.approx(120, abs=5)
    again = store.claim_next(range(100))
    assert again is not None
    second = store.attempt(run_id, again[1])
    second.register()
    assert store.run(run_id).working_since is None
    second.record_start(started())
    set_back(store, run_id, 10)
    second.end(Status.FINISHED)
    assert store.run(run_id).elapsed_s == pytest.approx(130, abs=5)


def test_a_store_from_before_the_first_release_is_refused_and_left_as_it_is(store: Store) -> None:
    with closing(sqlite3.connect(store.folder / "runs.sqlite3")) as database:
        database.execute("DELETE FROM _sqlite_migrations WHERE name >= 'm007'")
        database.commit()
    with pytest.raises(StoreError, match=r"was written before version 0\.1\.0 of SCL Playground"):
        Store(store.folder)
    assert sorted(path.name for path in store.folder.glob("*schema*")) == []


@pytest.mark.parametrize("text", ["", "nope", "../../etc/passwd", "a/b", "x" * 10_000, "\0", "%"])
def test_a_run_id_that_is_no_id_is_refused(store: Store, text: str) -> None:
    for read in (store.run, store.run_folder, store.find, store.discard, store.log_path):
        with pytest.raises(RunNotFoundError, match=r"[Rr]un"):
            read(text)


def test_a_run_is_found_by_number_id_or_beginning(store: Store) -> None:
    run_id = store.create(config())
    assert store.find("1") == store.find(run_id) == store.find(run_id[:5]) == run_id
    with pytest.raises(RunNotFoundError):
        store.find(run_id[:3])


# Attempts


def test_a_run_handed_to_a_process_belongs_to_that_process(store: Store) -> None:
    run_id = store.create(config())
    store.claim_next(SLOTS, DEAD)  # the claiming process has ended
    store.hand_over(Claim(run_id, 1, 0), liveness_of())
    assert store.run(run_id).status == Status.STARTING
    store.hand_over(Claim(run_id, 2, 0), DEAD)  # another attempt: ignored
    assert store.run(run_id).status == Status.STARTING
    with pytest.raises(EngineError, match="only a stopped"):
        store.requeue(run_id)
    store.attempt(run_id, 1).record_start(started())
    store.hand_over(Claim(run_id, 1, 0), DEAD)  # too late, the worker has reported: ignored
    assert store.run(run_id).status == Status.RUNNING


def test_writes_of_an_older_attempt_are_refused(store: Store) -> None:
    run_id = store.create(config())
    store.claim_next(SLOTS, DEAD)
    old = store.attempt(run_id, 1)
    store.requeue(run_id)
    with pytest.raises(StaleAttemptError):
        old.steps([Step(1, {"loss": 1.0})])
    store.claim_next(SLOTS, liveness_of())
    for write in (
        lambda: old.steps([Step(1, {"loss": 1.0})]),
        old.heartbeat,
        lambda: old.record_start(started()),
        lambda: old.evaluation(1, "validation", {}),
        lambda: old.predictions(Predictions("test", np.zeros((2, 2), np.float32), (1, 0))),
        lambda: old.end(Status.FINISHED),
        lambda: old.record_knob_turn(1, "lambda", 0.5),
    ):
        with pytest.raises(StaleAttemptError):
            write()
    assert store.steps(run_id) == []
    assert store.predictions(run_id) is None


def test_a_run_that_has_ended_is_final(store: Store) -> None:
    attempt = claimed(store)
    attempt.end(Status.FINISHED)
    with pytest.raises(StaleAttemptError):
        attempt.steps([Step(1, {"loss": 1.0})])
    with pytest.raises(EngineError, match="finished"):
        store.requeue(attempt.run_id)
    with pytest.raises(EngineError, match="nothing to pause"):
        store.send(attempt.run_id, "pause")


def test_a_resumed_attempt_cuts_what_came_after_its_checkpoint_once_it_begins(store: Store) -> None:
    run_id = store.create(parse_config({"phases": [{"steps": 9}], "checkpoint": {"snapshot_steps": [2, 6]}}))
    store.claim_next(SLOTS, liveness_of())
    attempt, folder = store.attempt(run_id, 1), store.run_folder(run_id)
    attempt.record_start(started())
    for step in range(1, 7):
        attempt.steps([Step(step, {"loss": float(step)})])
        attempt.evaluation(step, "validation", {"accuracy": 0.5})
        add_frame(attempt, step)
    attempt.record_knob_turn(5, "lambda", 0.5)
    for step in (2, 4, 6):  # a stop wrote that of step 4
        (folder / f"snapshot-{step:07d}.safetensors").write_bytes(b"")
    for name in ("maps-pca-steps-1", "measures-1", "layers"):
        (folder / name).mkdir()
        (folder / name / "0000002.safetensors").write_bytes(b"")
    attempt.end(Status.STOPPED)
    store.requeue(run_id)
    store.claim_next(SLOTS, liveness_of())
    second, before = store.attempt(run_id, 2), {*folder.iterdir()}
    second.register()
    assert (store.run(run_id).attempt, store.run(run_id).begun_attempt) == (2, 1)
    assert store.frame_steps(run_id) == [1, 2, 3, 4, 5, 6]
    assert {*folder.iterdir()} == before
    second.record_start(started(4))
    assert store.run(run_id).begun_attempt == 2
    assert [s.step for s in store.steps(run_id)] == [1, 2, 3, 4]
    assert store.frame_steps(run_id) == [1, 2, 3, 4]
    assert [e.step for e in store.evaluations(run_id)] == [1, 2, 3, 4]
    assert store.knob_turns(run_id) == [KnobTurn(step=5, name="lambda", value=0.5)]
    left = {f"frame-{step:07d}.safetensors" for step in (1, 2, 3, 4)} | {"snapshot-0000002.safetensors"}
    assert {path.name for path in folder.iterdir()} == left


# Liveness


@pytest.mark.parametrize(
    "worker", [DEAD, replace(liveness_of(), started_at=1.0), replace(liveness_of(), boot_id="another")]
)
def test_a_run_whose_worker_is_gone_is_interrupted_and_gives_its_slot_back(store: Store, worker: Liveness) -> None:
    """Its pid is free, belongs to a later process, or is from before the last boot."""
    run_id, second = store.create(config()), store.create(config())
    store.claim_next(SLOTS, worker)
    assert store.run(run_id).status == store.runs()[1].status == Status.INTERRUPTED
    assert store.claim_next(SLOTS) == (second, 1, 0)


@pytest.mark.parametrize(("worker", "silence_s"), [(liveness_of(), 100), (Liveness("elsewhere", "boot", 1, 1.0), 10)])
def test_a_worker_that_does_not_beat_is_gone(
    store: Store, worker: Liveness, silence_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker never began, and one is on another host, whose processes are invisible here."""
    run_id = store.create(config())
    store.claim_next(SLOTS, worker)
    assert store.run(run_id).status == Status.STARTING
    later = time.time() + silence_s
    monkeypatch.setattr("core.store.liveness.time.time", lambda: later)
    assert store.run(run_id).status == Status.INTERRUPTED


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="read only on Linux")
@pytest.mark.parametrize(("state", "alive"), [("R", True), ("S", True), ("T", True), ("Z", False), ("X", False)])
def test_a_process_is_alive_until_only_its_entry_is_left(
    state: str, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, fields = liveness_of(), liveness._stat_fields(os.getpid())
    monkeypatch.setattr(liveness, "_stat_fields", lambda _: [state, *fields[1:]])
    assert is_alive(me, None) is alive


# Frames


@pytest.mark.parametrize("damage", [lambda _: b"", lambda _: b"garbage", lambda whole: whole[:-7], None])
def test_a_damaged_frame_is_a_plain_message_and_harms_no_other(
    store: Store, damage: Callable[[bytes], bytes] | None
) -> None:
    attempt = claimed(store)
    add_frame(attempt, 1)
    add_frame(attempt, 2)
    path = store.run_folder(attempt.run_id) / "frame-0000001.safetensors"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    for read in (store.frame, store.map_points):
        with pytest.raises(StoreError, match="missing or damaged"):
            read(attempt.run_id, 1)
    assert store.frame(attempt.run_id, 2).step == 2


def test_damaged_tokens_and_predictions_are_a_plain_message(store: Store) -> None:
    attempt = claimed(store)
    attempt.tokens(Tokens((), ()))
    (attempt.folder / "tokens.json").write_text('{"rows": [1], "texts": [[1]]}')
    with pytest.raises(StoreError, match=r"tokens\.json is damaged"):
        store.tokens(attempt.run_id)
    attempt.predictions(Predictions("test", np.zeros((2, 2), np.float32), (1, 0)))
    path = attempt.folder / "predictions-test.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(StoreError, match=r"predictions-test\.safetensors"):
        store.predictions(attempt.run_id)


def test_frames_tokens_and_predictions_come_back_as_they_were(store: Store) -> None:
    attempt = claimed(store)
    attempt.record_start(started())
    assert store.tokens(attempt.run_id) == Tokens((), ())
    assert store.predictions(attempt.run_id) is None
    text = TokenText(("naïve “film”", "二"), (Word(0, 0, 5, (1, 2)), Word(1, 0, 1, (5,))), 7)
    attempt.tokens(Tokens((2,), (text,)))
    assert store.tokens(attempt.run_id) == Tokens((2,), (text,))
    attention = np.random.default_rng(0).random((2, 3, 7)).astype(np.float16)
    attempt.frame(replace(frame(1), attention=attention), np.zeros((3, 2), np.float32))
    made = add_frame(attempt, 2)
    np.testing.assert_array_equal(store.attention(attempt.run_id, 1), attention)
    np.testing.assert_array_equal(store.frame(attempt.run_id, 1).attention, attention)
    assert store.attention(attempt.run_id, 2) is None
    read = store.frame(attempt.run_id, 2)
    np.testing.assert_array_equal(read.embeddings, made.embeddings)
    np.testing.assert_array_equal(store.embeddings(attempt.run_id, 2), made.embeddings)
    np.testing.assert_array_equal(read.logits, made.logits)
    np.testing.assert_array_equal(store.map_points(attempt.run_id, 2), pca_map(made.embeddings))
    logits = np.array([[0.5, -1.0], [2.0, 3.0]], np.float32)
    attempt.predictions(Predictions("test", logits, (1, 0)))
    found = store.predictions(attempt.run_id)
    assert found is not None
    np.testing.assert_array_equal(found.logits, logits)
    assert (found.split, found.labels) == ("test", (1, 0))


def test_a_frame_that_cannot_be_written_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = claimed(store)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core.atomic.os.replace", full)
    with pytest.raises(StoreError, match="No space left"):
        add_frame(attempt, 1)
    assert store.frame_steps(attempt.run_id) == []
    assert not list(store.run_folder(attempt.run_id).iterdir())


def test_a_full_disk_is_a_plain_message_and_other_runs_are_unharmed(store: Store) -> None:
    done = claimed(store)
    done.steps([Step(1, {"loss": 1.0})])
    done.end(Status.FINISHED)
    attempt = claimed(store)
    pages = store._connection().execute("PRAGMA page_count").fetchone()[0]
    store._connection().execute(f"PRAGMA max_page_count = {pages}")
    many = [Step(step, {f"measure {i}": 1.0 for i in range(50)}) for step in range(1, 500)]
    with pytest.raises(StoreError, match="full: free some space"):
        attempt.steps(many)
    assert store.steps(attempt.run_id) == []
    assert store.run(done.run_id).status == Status.FINISHED
    assert len(store.steps(done.run_id)) == 1


def test_a_store_that_cannot_be_used_is_a_plain_message(store: Store, tmp_path: Path) -> None:
    store.create(config())
    store._connection().execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="is not writable"):
        store.create(config())
    assert len(store.runs()) == 1
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be created"):
        Store(tmp_path / "file" / "runs")
    (tmp_path / "runs.sqlite3").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path)


# Deleting


def test_discarded_runs_are_known_and_come_back_until_they_are_purged_with_their_files(store: Store) -> None:
    first, second = claimed(store), claimed(store)
    for attempt in (first, second):
        add_frame(attempt, 1)
        attempt.end(Status.FINISHED)
    active = claimed(store)
    with pytest.raises(EngineError, match="stop it"):
        store.discard(first.run_id, active.run_id)
    assert store.discarded() == []
    store.discard(first.run_id, second.run_id)
    assert [run.id for run in store.runs()] == [active.run_id]
    found = store.discarded()
    assert [(one.id, one.title) for one in found] == [(second.run_id, "Run 2"), (first.run_id, "Run 1")]
    assert found[0].at == found[1].at == pytest.approx(time.time(), abs=10)
    assert found[0].size == sum(path.stat().st_size for path in second.folder.iterdir()) > 0
    assert store.discarded(within_s=0.0) == []
    store.purge_discarded(older_than_s=60)
    store.restore(first.run_id)
    assert [one.id for one in store.discarded()] == [second.run_id]
    store.purge_discarded(older_than_s=0)
    assert not second.folder.exists()
    with pytest.raises(RunNotFoundError, match="permanently"):
        store.restore(second.run_id)
    assert store.frame(first.run_id, 1).step == 1


# Controls


def test_controls_are_taken_once_in_order_and_change_the_status(store: Store) -> None:
    attempt = claimed(store)
    store.send(attempt.run_id, "turn", "lambda", 0.25)
    store.send(attempt.run_id, "pause")
    assert store.knob_state(attempt.run_id).pending == {"lambda": 0.25}
    turn, pause = attempt.take_controls()
    assert (turn.kind, turn.name, turn.value) == ("turn", "lambda", 0.25)
    assert pause.kind == "pause"
    assert attempt.take_controls(after=pause.number) == []
    attempt.record_start(started())  # the encoder has been loaded
    assert store.run(attempt.run_id).status == Status.PAUSED
    store.send(attempt.run_id, "stop")
    store.send(attempt.run_id, "resume")
    attempt.take_controls()
    assert store.run(attempt.run_id).status == Status.STOPPING
    queued = store.create(config())
    store.send(queued, "stop")
    assert store.run(queued).status == Status.STOPPED


def test_of_the_controls_a_turn_alone_outlives_its_attempt_until_a_step_has_used_it(store: Store) -> None:
    attempt = claimed(store)
    store.send(attempt.run_id, "turn", "lambda", 0.25)
    attempt.take_controls()
    store.send(attempt.run_id, "stop")
    attempt.end(Status.STOPPED)
    store.requeue(attempt.run_id)
    store.claim_next(SLOTS, liveness_of())
    again = store.attempt(attempt.run_id, 2)
    assert [(control.kind, control.value) for control in again.take_controls()] == [("turn", 0.25)]
    again.record_knob_turn(1, "lambda", 0.25)
    assert again.take_controls() == []
    assert store.knob_state(attempt.run_id).pending == {}


def test_turns_that_a_config_says_are_used_once_their_steps_are_taken(store: Store) -> None:
    turns = [{"step": 2, "name": "lambda", "value": 0.5}, {"step": 4, "name": "lambda", "value": 0.1}]
    attempt = claimed(store, config().model_copy(update={"knob_turns": tuple(KnobTurn(**turn) for turn in turns)}))
    run_id = attempt.run_id
    attempt.record_start(started())
    assert store.knob_turns(run_id) == []
    attempt.steps([Step(step, {"loss": 1.0}) for step in (1, 2)])
    assert store.knob_turns(run_id) == [KnobTurn(step=2, name="lambda", value=0.5)]
    attempt.record_knob_turn(3, "lambda", 0.25)  # before its step is reported
    assert [turn.step for turn in store.knob_turns(run_id)] == [2, 3]
    attempt.steps([Step(step, {"loss": 1.0}) for step in (3, 4)])
    assert [turn.value for turn in store.knob_turns(run_id)] == [0.5, 0.25, 0.1]


def test_a_turn_that_was_sent_while_another_was_used_still_waits(store: Store) -> None:
    attempt = claimed(store)
    store.send(attempt.run_id, "turn", "lambda", 0.25)
    (heard,) = attempt.take_controls()
    store.send(attempt.run_id, "turn", "lambda", 0.5)
    store.send(attempt.run_id, "turn", "lambda", 0.25)
    attempt.record_knob_turn(1, "lambda", 0.25)  # the first turn; the worker has not received the others yet
    assert [control.value for control in attempt.take_controls(after=heard.number)] == [0.5, 0.25]
    assert store.knob_state(attempt.run_id).pending == {"lambda": 0.25}
    attempt.record_knob_turn(2, "lambda", 0.5)
    assert store.knob_state(attempt.run_id).pending == {"lambda": 0.25}
    attempt.record_knob_turn(2, "lambda", 0.25)
    assert store.knob_state(attempt.run_id).pending == {}


def test_a_refused_turn_waits_no_longer_and_the_run_says_why(store: Store) -> None:
    attempt = claimed(store)
    store.send(attempt.run_id, "turn", "temperature", 0.1)
    store.send(attempt.run_id, "turn", "lambda", 0.5)
    attempt.record_refused_turn("temperature", 0.1, "this objective has no such knob.")
    assert store.knob_state(attempt.run_id).pending == {"lambda": 0.5}
    assert str(store.run(attempt.run_id).message) == "this objective has no such knob."
    assert store.knob_turns(attempt.run_id) == []


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_knob_value_out_of_bounds_is_refused_and_not_recorded(store: Store, value: float) -> None:
    attempt = claimed(store)
    with pytest.raises(ConfigError, match="lambda"):
        store.send(attempt.run_id, "turn", "lambda", value)
    assert attempt.take_controls() == []


def test_a_knob_is_one_of_the_phase_that_the_next_step_belongs_to(store: Store) -> None:
    contrast = {"terms": [{"loss": "simcse", "views": [{"view": "dropout"}]}]}
    terms = {"terms": [{"loss": "cross_entropy"}, {"loss": "supcon"}, {"loss": "supcon"}], "combine": "additive"}
    phases = [{"steps": 3, "objective": contrast}, {"steps": 3, "objective": terms}]
    attempt = claimed(store, parse_config({"phases": phases}))
    run_id = attempt.run_id
    store.send(run_id, "turn", "temperature", 0.1)
    with pytest.raises(ConfigError, match=r"supcon_2\.temperature"):
        store.send(run_id, "turn", "supcon_2.temperature", 0.2)
    attempt.steps([Step(3, {"loss": 1.0})])
    store.send(run_id, "turn", "supcon_2.temperature", 0.2)
    with pytest.raises(ConfigError, match="no such knob"):
        store.send(run_id, "turn", "temperature", 0.1)
    with pytest.raises(ConfigError, match="temperature"):
        store.send(run_id, "turn", "supcon_2.temperature", 0.0)
    assert store.knob_state(run_id).pending == {"temperature": 0.1, "supcon_2.temperature": 0.2}
    attempt.record_knob_turn(4, "supcon_2.temperature", 0.2)
    turn = KnobTurn(step=4, name="supcon_2.temperature", value=0.2)
    assert store.run(run_id).effective.knob_turns == (turn,)
    parse_config(store.run(run_id).effective.model_dump(mode="json"))


def test_the_effective_config_has_planned_turns_and_those_that_were_made(store: Store) -> None:
    planned = parse_config(config().model_dump() | {"knob_turns": [{"step": 5, "name": "lambda", "value": 0.2}]})
    attempt, other = claimed(store, planned), store.create(config())
    run_id = attempt.run_id
    attempt.record_knob_turn(4, "temperature", 0.1 + 0.2)
    attempt.record_knob_turn(2, "lambda", 0.25)
    for run in (next(run for run in store.runs() if run.id == run_id), store.run(run_id)):
        assert run.config == planned
        turns = [(turn.step, turn.name, turn.value) for turn in run.effective.knob_turns]
        assert turns == [(2, "lambda", 0.25), (4, "temperature", 0.1 + 0.2), (5, "lambda", 0.2)]
        assert run.effective.model_copy(update={"knob_turns": ()}) == config()
    assert store.run(other).effective == config()


def test_a_list_of_runs_takes_as_many_queries_however_long_it_is(store: Store) -> None:
    def queries() -> int:
        asked: list[str] = []
        store._connection().set_trace_callback(asked.append)
        store.runs()
        store._connection().set_trace_callback(None)
        return len(asked)

    attempt = claimed(store)
    attempt.record_knob_turn(4, "temperature", 0.1)
    of_one = queries()
    for _ in range(5):
        store.create(config())
    assert queries() == of_one


def test_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    script = "import sys; from core.store import Store; Store(sys.argv[1]).runs()"
    command = [sys.executable, "-c", script, str(tmp_path / "new")]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate()[1], process.returncode) for process in started] == [("", 0)] * 4


def test_a_worker_that_ends_while_its_row_is_read_has_not_been_interrupted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker reports the end and exits after the row is read and before its process is looked up."""
    attempt = claimed(store)
    alive = liveness.is_alive

    def ends_now(worker: Liveness, heartbeat_at: float | None) -> bool:
        monkeypatch.setattr(liveness, "is_alive", alive)
        attempt.end(Status.FINISHED)
        return False

    monkeypatch.setattr(liveness, "is_alive", ends_now)
    assert store.run(attempt.run_id).status == Status.FINISHED
    monkeypatch.setattr(liveness, "is_alive", lambda *_: False)
    claimed(store)
    assert {run.status for run in store.runs()} == {Status.FINISHED, Status.INTERRUPTED}


def test_the_same_run_is_found_by_its_config_whatever_it_is_called(store: Store) -> None:
    store.adopt("abcdefghijkm", config(), "Replay", 1.0)
    assert store.same_as(config()) is None  # curves of other machines differ
    finished = claimed(store)
    finished.end(Status.FINISHED)
    newer = store.create(config())
    assert store.same_as(config().model_copy(update={"name": "Another"})) == finished.run_id
    assert store.same_as(config(7)) is None
    store.discard(finished.run_id)
    assert store.same_as(config()) == newer


class TestAdoption:
    RUN_ID = "abcdefghijkm"

    def test_one_that_is_being_adopted_is_not_adopted_twice_and_then_brought_back(self, store: Store) -> None:
        assert not store.bring_back(self.RUN_ID)
        attempt = store.adopt(self.RUN_ID, config(), "Replay", 1.0)
        attempt.record_start(started())
        with pytest.raises(StoreError, match="is being opened: try again in a moment"):
            store.bring_back(self.RUN_ID)
        with pytest.raises(StoreError, match="exists already"):
            store.adopt(self.RUN_ID, config(), "Replay", 1.0)
        attempt.end(Status.FINISHED)
        assert store.bring_back(self.RUN_ID)
        store.discard(self.RUN_ID)
        assert store.bring_back(self.RUN_ID)
        run = store.run(self.RUN_ID)
        assert (run.adopted, run.elapsed_s) == (True, 1.0)  # the time that it took on the other machine

    def test_what_was_cut_off_is_cleared_away_and_can_be_adopted_again(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.store.store.liveness_of", lambda: DEAD)
        add_frame(store.adopt(self.RUN_ID, config(), "Replay", 1.0), 0)
        monkeypatch.undo()
        folder = store.run_folder(self.RUN_ID)
        assert list(folder.rglob("*"))
        assert not store.bring_back(self.RUN_ID)
        assert not folder.exists()
        assert store.runs() == []
        store.adopt(self.RUN_ID, config(), "Replay", 1.0).end(Status.FINISHED)
        assert store.run(self.RUN_ID).status == Status.FINISHED

    @pytest.mark.parametrize("run_id", ["", "../../../x", "ABCDEFGHIJKM", "abcdefghijkm/"])
    def test_what_is_no_id_is_refused(self, store: Store, run_id: str) -> None:
        with pytest.raises(StoreError, match="is not a run id"):
            store.adopt(run_id, config(), "Replay", 1.0)
        assert store.runs() == []


class TestStartFromARun:
    @pytest.mark.parametrize("status", [Status.FINISHED, Status.FAILED, Status.STOPPED])
    def test_it_waits_until_that_run_has_ended(self, store: Store, status: Status) -> None:
        """An unfinished source does not block its follower, which then fails with a message."""
        source = store.create(config())
        follower = store.create(config().model_copy(update={"start": source}))
        assert store.claim_next(range(2)) == (source, 1, 0)
        assert store.claim_next(range(2)) is None
        store.attempt(source, 1).end(status)
        assert store.claim_next(range(2)) == (follower, 1, 0)

    def test_its_weights_are_spared_while_somebody_will_start_from_them(self, store: Store) -> None:
        source = claimed(store)
        (source.folder / "checkpoint.safetensors").parent.mkdir(parents=True, exist_ok=True)
        (source.folder / "checkpoint.safetensors").write_bytes(b"x" * 4096)
        source.end(Status.FINISHED)
        store.create(config().model_copy(update={"start": source.run_id}))
        keep_within(store, 1e-9)
        assert store.run(source.run_id).weights_dropped_at is None
        store.send(store.runs()[0].id, "stop")
        keep_within(store, 1e-9)
        assert store.run(source.run_id).weights_dropped_at is not None
