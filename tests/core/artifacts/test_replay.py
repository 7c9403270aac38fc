"""A run as one small file: exported, read, and opened in another store."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import __version__
from core.artifacts import replay_file
from core.artifacts.replay import ABOUT, open_replay, read_replay, write_replay
from core.config import KnobTurn, RunConfig, parse_config
from core.errors import StoreError
from core.events import Frame, Probe, Started, Step
from core.store import RunRecord, Status, Store
from core.store.attempt import Attempt
from tests.core.artifacts.made import MORE, recorded
from tests.core.store.claims import claimed

PROBE = Probe(ids=(3, 8), texts=("a film", "naïve <b>"), labels=(0, 1), classes=("bad", "good"))
FRAMES = (0, 2, 4)
SCORES = {"macro_f1": 0.5, "accuracy_low": 0.0, "accuracy_high": 1.0}


def begun_run(store: Store) -> tuple[str, Attempt]:
    attempt = claimed(store, parse_config({"phases": [{"steps": 4}], "probe": {"frame_steps": FRAMES}}))
    attempt.record_start(Started(0, 4, "cpu", PROBE, {"train_rows": 10.0}))
    return attempt.run_id, attempt


def ended_run(store: Store, frames: tuple[int, ...] = FRAMES, status: Status = Status.FINISHED, **scores: float) -> str:
    """Make an ended run with its probe, and with a frame, a step and an accuracy at some steps."""
    run_id, attempt = begun_run(store)
    for step in frames:
        points = np.array([[step, 0.12341], [0, -step]], np.float32)
        attempt.frame(Frame(step, np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)), points)
        attempt.evaluation(step, "validation", SCORES | {"accuracy": step / 10, **scores})
        if step:
            attempt.steps([Step(step, {"loss": 0.5})])
    attempt.evaluation(4, "test", SCORES | {"accuracy": 0.99})
    attempt.end(status)
    return run_id


class TestWrite:
    def test_a_run_is_written_and_read_back_and_gives_the_same_bytes(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_id, later = ended_run(store), time.time() + 100
        write_replay(store, run_id, tmp_path / "replay.zip")
        replay = read_replay(tmp_path / "replay.zip")
        assert (replay.title, replay.probe, replay.steps, replay.config.seed) == ("Run 1", PROBE, FRAMES, 0)
        assert [one.values["accuracy"] for one in replay.scores if one is not None] == [0.0, 0.2, 0.4]
        assert replay.maps[1] == pytest.approx(np.array([[2, 0.12341], [0, -2]]))
        assert replay.maps[1].dtype == np.float32
        made_with = replay_file.read(tmp_path / "replay.zip").run.made_with
        assert made_with["scl-playground"] == __version__
        assert {"python", "torch", "transformers"} < set(made_with)
        monkeypatch.setattr(time, "time", lambda: later)
        write_replay(store, run_id, tmp_path / "again.zip")
        assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "replay.zip").read_bytes()

    def test_folders_of_the_machine_stay_out(
        self, store: Store, draft: Callable[..., RunConfig], tiny_encoder: Path, small_csv: Path, tmp_path: Path
    ) -> None:
        translators = [str(tmp_path / "models" / "there"), str(tmp_path / "models" / "back")]
        # The config names them, but nothing loads them.
        run = recorded(store, draft(task={"translators": translators}, more=MORE))
        write_replay(store, run.id, tmp_path / "replay.zip")
        with zipfile.ZipFile(tmp_path / "replay.zip") as file:
            texts = [file.read(name) for name in file.namelist()]
        for place in (tiny_encoder, small_csv, *translators, store.folder):
            assert not any(str(Path(place).parent).encode() in text for text in texts)
        config = replay_file.read(tmp_path / "replay.zip").config
        assert (config.task.path, config.encoder.id) == (small_csv.name, tiny_encoder.name)
        assert config.task.translators == ("there", "back")

    def test_turned_knobs_and_numbers_beyond_half_precision_stay(
        self, store: Store, elsewhere: Store, tmp_path: Path
    ) -> None:
        run_id, attempt = begun_run(store)
        vectors = np.array([[1e6, 1, 0], [0, 2, -3e5]], np.float32)
        attempt.frame(Frame(0, vectors, np.ones((2, 2), np.float32)), np.ones((2, 2), np.float32))
        attempt.record_knob_turn(2, "lambda", 0.25)
        attempt.steps([Step(step, {"loss": 0.5}) for step in (1, 2, 3, 4)])
        attempt.end(Status.FINISHED)
        write_replay(store, run_id, tmp_path / "replay.zip")
        opened = open_replay(elsewhere, tmp_path / "replay.zip")
        assert elsewhere.knob_turns(opened) == store.knob_turns(run_id) == [KnobTurn(step=2, name="lambda", value=0.25)]
        assert np.array_equal(elsewhere.embeddings(opened, 0), vectors)

    @pytest.mark.parametrize(
        ("make", "why"),
        [
            (lambda store: begun_run(store)[0], "is running: wait"),
            (lambda store: ended_run(store, frames=()), "has no frames"),
            (lambda _store: "abcdefghijkm", "does not exist"),
        ],
    )
    def test_a_run_without_an_end_or_a_frame_is_refused(
        self, store: Store, tmp_path: Path, make: Callable[[Store], str], why: str
    ) -> None:
        with pytest.raises(StoreError, match=why):
            write_replay(store, make(store), tmp_path / "replay.zip")
        assert list(tmp_path.glob("*replay*")) == []

    def test_frames_of_a_run_that_diverged_are_left_out(self, store: Store, tmp_path: Path) -> None:
        run_id, attempt = begun_run(store)
        for step, number in ((0, 1.0), (2, float("nan"))):
            vectors = np.full((2, 3), number, np.float32)
            attempt.frame(Frame(step, vectors, np.ones((2, 2), np.float32)), np.ones((2, 2), np.float32))
        attempt.steps([Step(1, {"loss": 0.5}), Step(2, {"loss": 0.5, "grad_norm": float("inf")})])
        attempt.end(Status.FAILED, "the loss is no number")
        write_replay(store, run_id, tmp_path / "replay.zip")
        run = replay_file.read(tmp_path / "replay.zip").run
        assert run.frames == (0,)
        assert [dict(step.values) for step in run.steps] == [{"loss": 0.5}, {"loss": 0.5}]


class TestOpen:
    @pytest.fixture
    def archive(self, filled: Store, run: RunRecord, tmp_path: Path) -> Path:
        write_replay(filled, run.id, tmp_path / "replay.zip")
        return tmp_path / "replay.zip"

    def test_it_is_a_finished_run_with_all_that_was_recorded(
        self, filled: Store, run: RunRecord, elsewhere: Store, archive: Path
    ) -> None:
        opened = elsewhere.run(open_replay(elsewhere, archive, "somebody"))
        assert (opened.status, opened.message, opened.tags) == (Status.FINISHED, ABOUT, ("replay",))
        assert (opened.title, opened.probe, opened.facts) == (run.title, run.probe, run.facts)
        assert opened.owner == "somebody"
        kept = {"task": None, "encoder": None}
        assert opened.config.model_copy(update=kept) == run.effective.model_copy(update=kept)
        assert opened.elapsed_s == pytest.approx(run.elapsed_s, abs=0.06)  # stored in tenths
        for one, same in zip(elsewhere.steps(opened.id), filled.steps(run.id), strict=True):
            assert one.step == same.step
            assert one.values == pytest.approx(dict(same.values), rel=1e-5)
        assert elsewhere.frame_steps(opened.id) == filled.frame_steps(run.id)
        step = elsewhere.frame_steps(opened.id)[-1]
        for read, other in ((elsewhere.embeddings, filled.embeddings), (elsewhere.map_points, filled.map_points)):
            assert read(opened.id, step) == pytest.approx(other(run.id, step), rel=1e-3, abs=1e-4)
        attention, whole = elsewhere.attention(opened.id, step), filled.attention(run.id, step)
        assert attention[:, 0] == pytest.approx(whole.mean(1, dtype=np.float32), abs=1e-3)
        assert elsewhere.tokens(opened.id) == filled.tokens(run.id)
        test, same_test = elsewhere.predictions(opened.id), filled.predictions(run.id)
        assert test.labels == same_test.labels
        assert test.logits == pytest.approx(same_test.logits, rel=1e-3, abs=1e-4)

    def test_it_is_checked_and_opened_once_and_comes_back_when_it_was_deleted(
        self, elsewhere: Store, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_id = open_replay(elsewhere, archive)
        with monkeypatch.context() as patch:
            patch.setattr(replay_file, "read", lambda _: pytest.fail("the file was checked again"))
            assert open_replay(elsewhere, archive) == run_id
        assert len(elsewhere.runs()) == 1
        elsewhere.discard(run_id)
        assert open_replay(elsewhere, archive) == run_id
        elsewhere.discard(run_id)
        elsewhere.purge_discarded(0.0)
        assert open_replay(elsewhere, archive) == run_id
        assert elsewhere.run(run_id).status == Status.FINISHED
        write_replay(elsewhere, run_id, tmp_path / "again.zip")
        one, same = read_replay(archive), read_replay(tmp_path / "again.zip")
        assert (one.probe, one.steps, one.config) == (same.probe, same.steps, same.config)

    def test_a_run_that_was_stopped_says_so(self, store: Store, elsewhere: Store, tmp_path: Path) -> None:
        stopped = ended_run(store, frames=(0, 2), status=Status.STOPPED, train_rows=10.0)
        write_replay(store, stopped, tmp_path / "replay.zip")
        run = elsewhere.run(open_replay(elsewhere, tmp_path / "replay.zip"))
        assert (run.status, run.last_step) == (Status.FINISHED, 2)
        said = "A replay of a run that ended (stopped) at step 2 of 4. It has no weights to continue from."
        assert str(run.message) == said
        # Its classifier never learned, so its scores are those of its probe.
        assert [one.probe_rows for one in read_replay(tmp_path / "replay.zip").scores if one is not None] == [10, 10]
        assert [e.probe_rows for e in elsewhere.evaluations(run.id) if e.split == "validation"] == [10, 10]

    def test_what_cannot_be_kept_leaves_nothing(
        self, elsewhere: Store, archive: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise StoreError("The disk is full: free some space.")

        monkeypatch.setattr(Attempt, "end", full)
        with pytest.raises(StoreError, match="full"):
            open_replay(elsewhere, archive)
        assert elsewhere.runs() == []
        assert [path for path in (elsewhere.folder / "files").rglob("*") if path.is_file()] == []
        monkeypatch.undo()
        assert elsewhere.run(open_replay(elsewhere, archive)).status == Status.FINISHED

    def test_one_of_version_0_1_0_is_opened_without_the_folders_that_it_names(
        self, elsewhere: Store, archive: Path, tmp_path: Path
    ) -> None:
        old = tmp_path / "old.zip"
        with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(old, "w") as file:
            for name in whole.namelist():
                text = whole.read(name)
                if name == "run.json":
                    run = json.loads(text) | {"format": 1, "id": "abcdefgh2345"}
                    run["config"]["task"] |= {"id": "file", "path": "/home/someone/reviews.csv"}
                    run["config"]["encoder"]["id"] = "/home/someone/encoder"
                    text = json.dumps({key: value for key, value in run.items() if key not in ("made_with", "status")})
                file.writestr(name, text)
        run_id = open_replay(elsewhere, old)
        opened, now = elsewhere.run(run_id), elsewhere.run(open_replay(elsewhere, archive))
        assert (opened.title, opened.status, opened.last_step) == (now.title, Status.FINISHED, now.last_step)
        assert (opened.config.task.path, opened.config.encoder.id) == ("reviews.csv", "encoder")
        assert elsewhere.frame_steps(run_id) == elsewhere.frame_steps(now.id)
