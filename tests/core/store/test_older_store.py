"""A store as an older version of the project made it: everything in it is still there.

store_before_rooms.zip was made before core was divided into rooms: a finished run with a turned knob, a name and a tag,
a discarded one, one that waits, their rows, a map that a job has placed, a library with a task and a discarded one.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from core.artifacts.maps import read_maps, steps_source
from core.representation.projections import MapSpec
from core.store import Status, Store, TaskLibrary
from core.workers import Jobs
from core.workers.run_rows import TaskSource

FINISHED, DISCARDED, WAITING = "73dhnkh552a9", "pz5qciq8iw75", "twsfsj4swrmh"
TASK, GONE, JOB = "own-db5c4ca6788ae435", "own-929965cec4cf4015", "bjsuxdhnmdvj"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(Path(__file__).with_name("store_before_rooms.zip")) as file:
        file.extractall(tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def older(folder: Path) -> Store:
    return Store(folder)


def test_its_runs_are_listed(older: Store) -> None:
    found = {run.id: (run.title, run.status, run.tags) for run in older.runs()}
    assert found == {
        FINISHED: ("First, turned", Status.FINISHED, ("thesis",)),
        WAITING: ("Waiting", Status.QUEUED, ()),
    }
    older.restore(DISCARDED)
    assert older.run(DISCARDED).title == "Second"


def test_what_a_run_recorded_is_read(older: Store) -> None:
    run = older.run(FINISHED)
    assert [step.values["loss"] for step in older.steps(FINISHED)] == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert [(turn.step, turn.name, turn.value) for turn in older.knob_turns(FINISHED)] == [(3, "temperature", 0.1)]
    assert run.effective.knob_turns == tuple(older.knob_turns(FINISHED))
    assert {(e.step, e.split) for e in older.evaluations(FINISHED)} == {
        *((step, "validation") for step in (0, 2, 4)),
        (0, "baseline"),
        (4, "test"),
    }
    assert run.probe is not None
    assert run.probe.splits == ("validation",) * 4 + ("train",) * 2
    assert older.tokens(FINISHED).rows == (0,)


def test_its_frames_are_those_that_were_kept(older: Store) -> None:
    """The vectors were drawn with seed 7, one frame after the other, logits and attention in between."""
    rng = np.random.default_rng(7)
    for step in older.frame_steps(FINISHED):
        frame = older.frame(FINISHED, step)
        np.testing.assert_array_equal(frame.embeddings, rng.standard_normal((6, 8)).astype(np.float32))
        np.testing.assert_array_equal(frame.logits, rng.standard_normal((6, 2)).astype(np.float32))
        np.testing.assert_array_equal(frame.attention, rng.random((2, 2, 3)).astype(np.float16))
    assert older.frame_steps(FINISHED) == [0, 2, 4]


def test_a_map_that_a_job_placed_is_found(older: Store) -> None:
    run = older.run(FINISHED)
    source = steps_source(older, run, (0, 2, 4))
    found = read_maps(source.folder(older.run_folder(FINISHED), MapSpec("pca", 2)), (0, 2, 4))
    assert {number: points.shape for number, points in found.items()} == {0: (6, 2), 2: (6, 2), 4: (6, 2)}


def test_the_rows_of_a_run_are_there(older: Store, folder: Path) -> None:
    config = older.run(FINISHED).config
    data = TaskSource(folder).kept(config.task, config.seed)
    assert data.content_hash == config.task.content_hash
    assert data.classes == ("no", "yes")


def test_the_library_is_there(folder: Path) -> None:
    tasks = TaskLibrary(folder)
    assert [(task.id, task.name, task.rows) for task in tasks.tasks()] == [(TASK, "My reviews", 24)]
    assert tasks.rows(TASK).texts[1] == "Soup number 1, good"
    tasks.restore(GONE)
    assert {task.name for task in tasks.tasks()} == {"My reviews", "Gone"}


def test_the_job_that_placed_the_map_is_listed(folder: Path) -> None:
    (job,) = Jobs(folder).jobs()
    assert (job.id, job.kind, job.status, job.done) == (JOB, "map", "done", 3)
