"""Between steps with weights, a text moves as its nearest examples do. Checked against slow loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from core.artifacts.inspect_job import job
from core.artifacts.sentence import Inspected, read_inspected
from core.artifacts.text_history import biography, path
from core.errors import StoreError
from core.events import FloatArray, TokenText
from core.representation.projections import pca_map, place_new
from core.store import RunRecord, Store
from tests.cases import each
from tests.core.artifacts.made import FRAMES, silent

Read = Callable[[int], tuple[FloatArray, FloatArray]]
STEPS = tuple(range(0, 100, 10))


def told_at(steps: Sequence[int], vectors: Any, logits: Any) -> Inspected:
    count = len(steps)
    attention = np.zeros((count, 1, 1, 3), np.float16)
    arrays = np.asarray(vectors, np.float32), np.asarray(logits, np.float32)
    return Inspected(TokenText(("a",), (), 3), tuple(steps), tuple(range(count)), *arrays, attention)


def drifting(count: int = 40, width: int = 6, classes: int = 3, seed: int = 0) -> Read:
    """Return frames whose examples move independently."""
    rng = np.random.default_rng(seed)
    start, drift = rng.standard_normal((2, count, width))
    heads = rng.standard_normal((width, classes))

    def read(step: int) -> tuple[FloatArray, FloatArray]:
        rows = start + drift * math.sin(step / 40) + 0.1 * np.sin(step * start)
        return rows.astype(np.float32), (rows @ heads).astype(np.float32)

    return read


def slowly(found: Inspected, read: Read, step: int, k: int) -> list[np.ndarray]:
    """Apply the formula example by example."""

    def unit(rows: np.ndarray) -> np.ndarray:
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    def side(number: int) -> tuple[np.ndarray, np.ndarray]:
        then, scores_then, now, scores_now = (a.astype(float) for at in (found.steps[number], step) for a in read(at))
        vector, logits = found.vectors[number].astype(float), found.logits[number].astype(float)
        far = np.linalg.norm(unit(then) - unit(vector), axis=1)
        near = np.argsort(far)[:k]
        for row in near:
            share = 1 / far[row] / sum(1 / far[near])
            vector = vector + share * (now[row] - then[row])
            logits = logits + share * (scores_now[row] - scores_then[row])
        return vector, logits

    before = max(n for n, s in enumerate(found.steps) if s < step)
    after = min((n for n, s in enumerate(found.steps) if s > step), default=None)
    if after is None:
        return list(side(before))
    t = (step - found.steps[before]) / (found.steps[after] - found.steps[before])
    return [(1 - t) * a + t * b for a, b in zip(side(before), side(after), strict=True)]


@each("k", [1, 4, 10])
def test_estimates_are_those_of_the_formula(k: int) -> None:
    rng, read = np.random.default_rng(1), drifting()
    found = told_at((0, 30, 70), rng.standard_normal((3, 6)), rng.standard_normal((3, 3)))
    life = biography(found, STEPS, read, k=k)
    assert life.exact == tuple(step in (0, 30, 70) for step in STEPS)
    assert life.neighbours.shape == (10, k)
    for number, step in enumerate(STEPS):
        if step in found.steps:
            np.testing.assert_array_equal(life.vectors[number], found.vectors[found.steps.index(step)])
            np.testing.assert_array_equal(life.logits[number], found.logits[found.steps.index(step)])
        else:
            vector, logits = slowly(found, read, step, k)
            np.testing.assert_allclose(life.vectors[number], vector, atol=1e-5)
            np.testing.assert_allclose(life.logits[number], logits, atol=1e-5)


def test_a_text_equal_to_an_example_follows_its_vectors_and_its_path_on_the_map() -> None:
    read, row = drifting(), 17
    anchors = (0, 50)
    found = told_at(anchors, [read(s)[0][row] for s in anchors], [read(s)[1][row] for s in anchors])
    life = biography(found, STEPS, read)
    maps = {step: pca_map(read(step)[0]) for step in STEPS}
    places = path(life, maps, lambda step: read(step)[0], linear=True)
    for number, step in enumerate(STEPS):
        np.testing.assert_allclose(life.vectors[number], read(step)[0][row], atol=1e-5)
        np.testing.assert_allclose(life.logits[number], read(step)[1][row], atol=1e-5)
        np.testing.assert_allclose(places[number], maps[step][row], atol=1e-4)
    assert (life.neighbours[:, 0] == row).all()


def test_neighbours_are_the_nearest_by_cosine_and_counted_against_the_first_frame() -> None:
    rng, read = np.random.default_rng(2), drifting()
    found = told_at((0, 50), rng.standard_normal((2, 6)), rng.standard_normal((2, 3)))
    life = biography(found, STEPS, read, k=5)
    for number, step in enumerate(STEPS):
        rows, vector = read(step)[0].astype(float), life.vectors[number].astype(float)
        cosines = [float(row @ vector / np.linalg.norm(row) / np.linalg.norm(vector)) for row in rows]
        expected = sorted(range(len(rows)), key=lambda i: -cosines[i])[:5]
        assert life.neighbours[number].tolist() == expected
        assert life.stayed[number] == len([i for i in life.neighbours[0] if i in expected])
    assert life.stayed[0] == 5


def test_steps_with_weights_that_are_no_frames_count_for_nothing() -> None:
    rng, read = np.random.default_rng(3), drifting()
    vectors, logits = rng.standard_normal((3, 6)), rng.standard_normal((3, 3))
    with_stop = biography(told_at((0, 30, 37), vectors, logits), STEPS, read)
    without = biography(told_at((0, 30), vectors[:2], logits[:2]), STEPS, read)
    np.testing.assert_array_equal(with_stop.vectors, without.vectors)
    with pytest.raises(StoreError, match="No frame of the run"):
        biography(told_at((37,), vectors[:1], logits[:1]), STEPS, read)


def test_fewer_examples_than_neighbours_and_vectors_of_length_zero_are_no_obstacle() -> None:
    def read(step: int) -> tuple[FloatArray, FloatArray]:
        return np.array([[0, 0], [1, step]], np.float32), np.zeros((2, 2), np.float32)

    life = biography(told_at((0,), [[0, 0]], [[0, math.log(3)]]), (0, 10), read)
    assert life.neighbours.shape == (2, 2)
    assert np.isfinite(life.vectors).all()
    np.testing.assert_allclose(life.probabilities, [[0.25, 0.75]] * 2, atol=1e-7)
    assert life.predictions.tolist() == [1, 1]


def test_a_real_runs_frames_are_met_where_the_model_read_and_nearly_met_between(filled: Store, run: RunRecord) -> None:
    text = run.probe.texts[4]
    job({"run": run.id, "what": "sentence", "text": text, "second": None}, filled.folder, silent)
    found = read_inspected(filled.run_folder(run.id), text)
    life = biography(found, FRAMES, lambda step: (filled.embeddings(run.id, step), filled.logits(run.id, step)))
    assert life.exact == (True, True, True, False, True)
    recorded_vectors = np.stack([filled.embeddings(run.id, step)[4] for step in FRAMES])
    np.testing.assert_allclose(life.vectors, recorded_vectors, atol=1e-4)
    assert life.predictions.tolist() == [int(filled.logits(run.id, step)[4].argmax()) for step in FRAMES]


def test_the_path_is_that_of_each_frames_own_map() -> None:
    read = drifting()
    life = biography(told_at((0,), [np.ones(6)], [np.zeros(3)]), STEPS, read)
    maps = {
        step: (read(step)[0] @ np.random.default_rng(step).normal(size=(6, 2))).astype(np.float32) for step in STEPS
    }
    del maps[30]
    places = path(life, maps, lambda step: read(step)[0], linear=False)
    for number, (step, place) in enumerate(zip(STEPS, places, strict=True)):
        if step == 30:
            assert place is None
        else:
            alone = place_new(maps[step], read(step)[0], life.vectors[[number]], linear=False)[0]
            assert place == pytest.approx(alone.tolist())


@each("linear", [True, False])
def test_on_maps_that_were_fitted_once_one_frame_tells_the_places(linear: bool) -> None:
    read = drifting()
    life = biography(told_at((0,), [np.ones(6)], [np.zeros(3)]), STEPS, read)
    last = STEPS[-1]
    maps = {step: pca_map(read(step)[0]) for step in (*STEPS[:3], last)}
    asked: list[int] = []

    def vectors(step: int) -> Any:
        asked.append(step)
        return read(step)[0]

    places = path(life, maps, vectors, linear=linear, reference=last)
    assert asked == [last]
    expected = place_new(maps[last], read(last)[0], life.vectors, linear=linear)
    for number, step in enumerate(STEPS):
        assert places[number] == (pytest.approx(expected[number].tolist()) if step in maps else None)
    assert path(life, {0: maps[last]}, vectors, linear=linear, reference=last) == [None] * len(STEPS)
