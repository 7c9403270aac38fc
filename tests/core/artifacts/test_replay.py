"""A finished run as one small file, and the one that comes with the project."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.artifacts.replay import ABOUT, BUNDLED, bundled_replay, open_replay, read_replay, write_replay
from core.config import RunConfig, parse_config
from core.errors import RunNotFoundError, StoreError
from core.events import Frame, Probe, Started
from core.store import Status, Store
from tests.core.artifacts.made import MORE, recorded

PROBE = Probe(ids=(3, 8), texts=("a film", "naïve <b>"), labels=(0, 1), classes=("bad", "good"))


def queued_run(store: Store) -> str:
    return store.create(parse_config({"phases": [{"steps": 4}]}))


def finished_run(store: Store, frames: tuple[int, ...] = (0, 2, 4)) -> str:
    """A run with its probe, a frame and an accuracy at some steps, and a frame that was never scored."""
    run_id = queued_run(store)
    claim = store.claim_next([0])
    assert claim is not None
    attempt = store.attempt(run_id, claim[1])
    attempt.started(Started(0, 4, "cpu", PROBE, {}))
    for step in frames:
        points = np.array([[step, 0.12341], [0, -step]], np.float32)
        attempt.frame(Frame(step, np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)), points)
        attempt.evaluation(step, "validation", {"accuracy": step / 10})
    attempt.evaluation(4, "test", {"accuracy": 0.99})
    attempt.frame(Frame(3, np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)), np.ones((2, 2), np.float32))
    return run_id


def test_a_run_is_written_and_read_back(store: Store, tmp_path: Path) -> None:
    write_replay(store, finished_run(store), tmp_path / "replay.zip")
    replay = read_replay(tmp_path / "replay.zip")
    assert replay.title == "Run 1"
    assert replay.probe == PROBE
    assert replay.steps == (0, 2, 4)
    assert replay.accuracies == (0.0, 0.2, 0.4)
    assert replay.maps[1] == pytest.approx(np.array([[2, 0.12341], [0, -2]]))
    assert replay.maps[1].dtype == np.float32


def test_a_run_that_does_not_exist_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError):
        write_replay(store, "abcdefghijkm", tmp_path / "replay.zip")


@pytest.mark.parametrize("make", [queued_run, lambda store: finished_run(store, frames=())])
def test_a_run_without_scored_frames_is_refused(store: Store, tmp_path: Path, make: Callable[[Store], str]) -> None:
    with pytest.raises(StoreError):
        write_replay(store, make(store), tmp_path / "replay.zip")
    assert list(tmp_path.glob("replay*")) == []


class TestOpen:
    @pytest.fixture
    def archive(self, store: Store, draft: Callable[..., RunConfig], tmp_path: Path) -> tuple[str, Path]:
        run = recorded(store, draft(more=MORE))
        write_replay(store, run.id, tmp_path / "replay.zip")
        return run.id, tmp_path / "replay.zip"

    def test_it_is_a_finished_run_with_all_that_was_recorded(
        self, store: Store, archive: tuple[str, Path], tmp_path: Path
    ) -> None:
        run_id, path = archive
        other = Store(tmp_path / "elsewhere")
        assert open_replay(other, path) == run_id
        made, opened = store.run(run_id), other.run(run_id)
        assert (opened.status, opened.message, opened.tags) == (Status.FINISHED, ABOUT, ("replay",))
        assert (opened.config, opened.probe, opened.facts) == (made.effective, made.probe, made.facts)
        assert opened.elapsed_s == pytest.approx(made.elapsed_s, abs=1)
        assert [step.step for step in other.steps(run_id)] == [step.step for step in store.steps(run_id)]
        for one, same in zip(other.steps(run_id), store.steps(run_id), strict=True):
            assert one.values == pytest.approx(dict(same.values), rel=1e-5)
        assert other.frame_steps(run_id) == store.frame_steps(run_id)
        step = other.frame_steps(run_id)[-1]
        assert other.embeddings(run_id, step) == pytest.approx(store.embeddings(run_id, step), rel=1e-3, abs=1e-4)
        assert other.map_points(run_id, step) == pytest.approx(store.map_points(run_id, step))
        attention, whole = other.attention(run_id, step), store.attention(run_id, step)
        assert attention is not None
        assert whole is not None
        assert attention[:, 0] == pytest.approx(whole.mean(1, dtype=np.float32), abs=1e-3)
        assert other.tokens(run_id) == store.tokens(run_id)
        other.close()

    def test_it_is_opened_once_and_comes_back_when_it_was_deleted(
        self, archive: tuple[str, Path], tmp_path: Path
    ) -> None:
        other = Store(tmp_path / "elsewhere")
        run_id = open_replay(other, archive[1])
        open_replay(other, archive[1])
        assert len(other.runs()) == 1
        other.discard(run_id)
        assert open_replay(other, archive[1]) == run_id
        other.delete(run_id)
        assert open_replay(other, archive[1]) == run_id
        assert other.run(run_id).status == Status.FINISHED
        other.close()

    @pytest.mark.parametrize("member", ["run.json", "maps.safetensors", "frames.safetensors", "tokens.json"])
    def test_a_damaged_one_is_refused_and_nothing_is_created(
        self, archive: tuple[str, Path], tmp_path: Path, member: str
    ) -> None:
        damaged = tmp_path / "damaged.zip"
        with zipfile.ZipFile(archive[1]) as whole, zipfile.ZipFile(damaged, "w") as file:
            for name in whole.namelist():
                file.writestr(name, whole.read(name)[:50] if name == member else whole.read(name))
        other = Store(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="damaged"):
            open_replay(other, damaged)
        with zipfile.ZipFile(damaged, "w") as file:
            file.writestr("run.json", "{}")
        with pytest.raises(StoreError, match="something is missing"):
            open_replay(other, damaged)
        damaged.write_bytes(b"no zip")
        with pytest.raises(StoreError, match="no replay"):
            open_replay(other, damaged)
        assert other.runs() == []
        other.close()

    def test_a_frame_of_another_size_is_refused(self, archive: tuple[str, Path], tmp_path: Path) -> None:
        other, damaged = Store(tmp_path / "elsewhere"), tmp_path / "damaged.zip"
        with zipfile.ZipFile(archive[1]) as whole, zipfile.ZipFile(damaged, "w") as file:
            for name in whole.namelist():
                text = whole.read(name)
                if name == "run.json":
                    run = json.loads(text)
                    run["probe"]["ids"].append(max(run["probe"]["ids"]) + 1)
                    text = json.dumps(run).encode()
                file.writestr(name, text)
        with pytest.raises(StoreError, match="frame of step 0 is damaged"):
            open_replay(other, damaged)
        assert other.runs() == []
        other.close()


class TestBundled:
    def test_it_has_one_map_and_one_score_per_step(self) -> None:
        replay = bundled_replay()
        points = len(replay.probe.ids)
        assert len(replay.steps) == len(replay.maps) == len(replay.accuracies) > 10
        assert all(frame.shape == (points, 2) and np.isfinite(frame).all() for frame in replay.maps)
        assert all(0 <= accuracy <= 1 for accuracy in replay.accuracies)
        assert list(replay.steps) == sorted(set(replay.steps))
        assert replay.steps[0] == 0

    def test_every_point_has_a_text_and_a_known_class(self) -> None:
        probe = bundled_replay().probe
        assert len(set(probe.ids)) == len(probe.ids) == len(probe.texts) == len(probe.labels)
        assert set(probe.labels) == set(range(len(probe.classes)))

    def test_the_map_moves_and_the_classes_come_apart(self) -> None:
        replay = bundled_replay()
        labels = np.asarray(replay.probe.labels)

        def gap(frame: np.ndarray) -> float:
            centres = [frame[labels == label].mean(0) for label in (0, 1)]
            return float(np.linalg.norm(centres[0] - centres[1]) / frame.std())

        assert gap(replay.maps[-1]) > 2 * gap(replay.maps[0])
        assert replay.accuracies[-1] > replay.accuracies[0]

    def test_it_is_small_and_opens(self, store: Store) -> None:
        assert BUNDLED.stat().st_size < 1_500_000
        run = store.run(open_replay(store))
        assert run.status == Status.FINISHED
        assert run.config.task.id == "film_reviews"
        assert len(store.frame_steps(run.id)) == len(bundled_replay().steps)
