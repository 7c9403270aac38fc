"""A finished run as one small file, and the one that comes with the project."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.config import parse_config
from core.errors import RunNotFoundError, StoreError
from core.events import Frame, Probe, Started
from core.replay import BUNDLED, bundled_replay, read_replay, write_replay
from core.store import Store

PROBE = Probe(ids=(3, 8), texts=("a film", "naïve <b>"), labels=(0, 1), classes=("bad", "good"))


def queued_run(store: Store) -> str:
    return store.create(parse_config({"phases": [{"steps": 4}]}))


def finished_run(store: Store, frames: tuple[int, ...] = (0, 2, 4)) -> str:
    """A run that told its probe, a frame and an accuracy at some steps, and a frame that was never scored."""
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
    write_replay(store, finished_run(store), tmp_path / "replay.json")
    replay = read_replay(tmp_path / "replay.json")
    assert replay.title == "Run 1"
    assert replay.probe == PROBE
    assert replay.steps == (0, 2, 4)
    assert replay.accuracies == (0.0, 0.2, 0.4)
    assert replay.maps[1] == pytest.approx(np.array([[2, 0.1234], [0, -2]]))
    assert replay.maps[1].dtype == np.float32


def test_a_run_that_does_not_exist_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError):
        write_replay(store, "abcdefghijkm", tmp_path / "replay.json")


def test_a_run_that_never_started_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        write_replay(store, queued_run(store), tmp_path / "replay.json")
    assert not (tmp_path / "replay.json").exists()


def test_a_run_without_frames_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        write_replay(store, finished_run(store, frames=()), tmp_path / "replay.json")
    assert not (tmp_path / "replay.json").exists()


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

    def test_it_is_small(self) -> None:
        assert BUNDLED.stat().st_size < 300_000
        assert json.loads(BUNDLED.read_text(encoding="utf-8"))["title"]
