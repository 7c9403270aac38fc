"""Maps of a run's frames: fitted and placed maps, their order, and external vectors placed on a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from weakref import ref

import numpy as np
import pytest

from core.representation.projections import MapSpec, Placed, keyframes, map_frames, pca_map, place_new
from core.representation.projections.entry import PreviousMap
from core.representation.projections.pca import place
from core.representation.projections.sequence import FRAMES_IN_MEMORY, interpolate_points
from tests.cases import each
from tests.core.representation.projections.clouds import ODD, clusters

RNG = np.random.default_rng(0)
VECTORS, NEW = RNG.normal(size=(40, 12)), RNG.normal(size=(9, 12))
POINTS = RNG.normal(size=(40, 2)).astype(np.float32)

SPECS = [MapSpec("pca"), MapSpec("pca", 3, "once"), MapSpec("tsne"), MapSpec("umap", 3), MapSpec("umap", mode="once")]
FOLLOWING = [spec for spec in SPECS if spec.mode == "each"]
BY_KEYFRAMES = MapSpec("umap")
PLANNED = list(range(0, 300, 10))


class Run:
    """Frames that drift from a cloud to clusters, and the maps made of them."""

    def __init__(self, planned: Sequence[int], points: int = 30) -> None:
        cloud, end = np.random.default_rng(1).normal(size=(points, 6)), clusters(points, 6)
        last = max(planned, default=1) or 1
        self.frames = {step: (1 - step / last) * cloud + step / last * end for step in planned}
        self.maps: dict[int, np.ndarray] = {}
        self.read: list[int] = []

    def embeddings(self, step: int) -> np.ndarray:
        self.read.append(step)
        return self.frames[step]

    def map(
        self, spec: MapSpec, planned: Sequence[int], present: Sequence[int], *, ended: bool, most: int = 1000
    ) -> list[Placed]:
        made = []
        for placed in map_frames(spec, planned, present, self.embeddings, self.maps.get, ended=ended):
            self.maps[placed.step] = placed.points
            made.append(placed)
            if len(made) == most:
                break
        return made


def same(first: dict[int, np.ndarray], second: dict[int, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all((first[step] == second[step]).all() for step in first)


class TestKeyframes:
    def test_few_frames_are_all_fitted(self) -> None:
        assert keyframes([0, 1, 5], [0, 1, 5], ended=True) == (0, 1, 5)

    @each("count", [24, 25, 200])
    def test_of_many_at_most_24_are_fitted_evenly(self, count: int) -> None:
        steps = [place * place for place in range(count)]
        fitted = keyframes(steps, steps, ended=True)
        assert len(fitted) == 24
        assert fitted[0] == steps[0]
        assert fitted[-1] == steps[-1]
        gaps = np.diff([steps.index(step) for step in fitted])
        assert gaps.max() - gaps.min() <= 1

    def test_more_frames_change_nothing_about_earlier_ones(self) -> None:
        whole = keyframes(PLANNED, PLANNED, ended=True)
        for count in range(1, len(PLANNED)):
            assert keyframes(PLANNED, PLANNED[:count], ended=False) == tuple(
                s for s in whole if s <= PLANNED[count - 1]
            )

    def test_the_last_frame_of_an_ended_run_is_one(self) -> None:
        steps = list(range(100))
        assert keyframes(steps, steps[:51], ended=True) == (*keyframes(steps, steps[:51], ended=False), 50)
        assert keyframes(steps, [*steps[:50], 49.5], ended=True)[-1] == 49.5  # type: ignore[list-item]

    def test_the_first_frame_that_is_there_is_one(self) -> None:
        assert keyframes(PLANNED, [20, 70], ended=False)[0] == 20

    def test_no_frames_no_keyframes(self) -> None:
        assert keyframes(PLANNED, [], ended=True) == ()
        assert keyframes([], [3, 4, 5], ended=True) == (3, 5)


@cache
def whole(spec: MapSpec) -> tuple[Run, list[Placed]]:
    """Return a run with all its maps, and the maps in the order of their computation."""
    run = Run(PLANNED)
    return run, run.map(spec, PLANNED, PLANNED, ended=True)


@each("spec", SPECS)
class TestEverySpec:
    def test_every_frame_gets_a_map(self, spec: MapSpec) -> None:
        _, made = whole(spec)
        assert sorted(placed.step for placed in made) == PLANNED
        for placed in made:
            assert placed.points.shape == (30, spec.dims)
            assert placed.points.dtype == np.float32
            assert np.isfinite(placed.points).all()

    def test_nothing_is_made_twice(self, spec: MapSpec) -> None:
        run = Run(PLANNED)
        run.maps |= whole(spec)[0].maps
        assert run.map(spec, PLANNED, PLANNED, ended=True) == []
        assert run.read == []

    def test_interrupted_work_ends_at_the_same_digits(self, spec: MapSpec) -> None:
        parts = Run(PLANNED)
        while parts.map(spec, PLANNED, PLANNED, ended=True, most=4):
            pass
        assert same(whole(spec)[0].maps, parts.maps)

    def test_a_run_watched_live_ends_at_the_same_digits(self, spec: MapSpec) -> None:
        live = Run(PLANNED)
        for count in range(1, len(PLANNED) + 1, 3):
            live.map(spec, PLANNED, PLANNED[:count], ended=False)
        live.map(spec, PLANNED, PLANNED, ended=True)
        assert same(whole(spec)[0].maps, live.maps)

    def test_one_frame_is_fitted_and_none_is_not(self, spec: MapSpec) -> None:
        assert [placed.step for placed in Run([7]).map(spec, [7], [7], ended=True)] == [7]
        assert Run([]).map(spec, PLANNED, [], ended=True) == []


@each("spec", FOLLOWING)
def test_frames_hardly_move_where_the_model_hardly_did(spec: MapSpec) -> None:
    run = Run([0, 1])
    run.frames[1] = run.frames[0] * 3  # another length, the same directions
    run.map(spec, [0, 1], [0, 1], ended=True)
    assert run.maps[1] == pytest.approx(run.maps[0], abs=1e-3 * float(np.ptp(run.maps[0])))


def test_keyframes_come_first_and_then_the_frames_before_them() -> None:
    _, made = whole(BY_KEYFRAMES)
    fitted = keyframes(PLANNED, PLANNED, ended=True)
    expected: list[int] = []
    for before, key in zip((-1, *fitted), fitted, strict=False):
        expected += [key, *(step for step in PLANNED if before < step < key)]
    assert [placed.step for placed in made] == expected


def test_every_frame_of_pca_is_fitted_onto_the_one_before() -> None:
    run = Run(PLANNED)
    run.map(MapSpec("pca"), PLANNED, PLANNED, ended=False)
    previous = None
    for step in PLANNED:
        previous = pca_map(run.frames[step], previous)
        assert run.maps[step] == pytest.approx(previous, abs=1e-6)


def test_frames_after_the_last_keyframe_wait() -> None:
    run = Run(PLANNED)
    fitted = keyframes(PLANNED, PLANNED, ended=True)
    waiting = next(step for step in PLANNED if step not in fitted)
    present = [step for step in PLANNED if step <= waiting]
    assert waiting not in [placed.step for placed in run.map(BY_KEYFRAMES, PLANNED, present, ended=False)]
    assert [placed.step for placed in run.map(BY_KEYFRAMES, PLANNED, present, ended=True)] == [waiting]


@each("method", ["pca", "umap"])
def test_fitting_once_waits_for_the_end_and_begins_with_the_last_frame(method: str) -> None:
    run, spec = Run(PLANNED), MapSpec(method, mode="once")
    assert run.map(spec, PLANNED, PLANNED, ended=False) == []
    made = run.map(spec, PLANNED, PLANNED, ended=True)
    assert [placed.step for placed in made] == [PLANNED[-1], *PLANNED[:-1]]


def test_few_frames_are_held_in_memory() -> None:
    run, made, most = Run(PLANNED), list[ref[np.ndarray]](), 0

    def read(step: int) -> np.ndarray:
        nonlocal most
        vectors = run.frames[step].copy()
        made.append(ref(vectors))
        most = max(most, sum(one() is not None for one in made))
        return vectors

    assert len(list(map_frames(BY_KEYFRAMES, PLANNED, PLANNED, read, {}.get, ended=True))) == len(PLANNED)
    assert most <= 2 * FRAMES_IN_MEMORY  # those cached, and those in use


def test_between_goes_by_the_distances_of_the_vectors() -> None:
    a, b = np.array([[1.0, 0], [1, 0], [1, 0], [0, -2]]), np.array([[0.0, 1], [0, 1], [1, 0], [0, -1]])
    angle = np.pi / 6
    here = np.array([[np.cos(angle), np.sin(angle)], [0, 5], [1, 0], [0, -3]])
    start, end = np.zeros((4, 2), np.float32), np.full((4, 2), 10, np.float32)
    d_a, d_b = 2 * np.sin(angle / 2), 2 * np.sin((np.pi / 2 - angle) / 2)
    expected = [10 * d_a / (d_a + d_b), 10, 0, 0]
    assert interpolate_points((start, end), (a, b), here) == pytest.approx(np.repeat([expected], 2, axis=0).T)


def test_vectors_that_meet_between_two_keyframes_share_a_place() -> None:
    a, b = np.array([[1.0, 0], [0, 1], [-1, 0]]), np.array([[1.0, 0], [0, 1], [0, -1]])
    here = np.array([[2.0, 2], [1, 1], [-1, 0]])
    start, end = np.array([[0, 0], [4, 0], [9, 9]], np.float32), np.array([[0, 2], [4, 2], [5, 5]], np.float32)
    # Two are halfway by their distances, which are equal. The third has not moved yet.
    assert interpolate_points((start, end), (a, b), here) == pytest.approx(np.array([[2, 1], [2, 1], [9, 9]]), abs=1e-6)


@each(("dims", "width"), [(2, 12), (3, 60)])
def test_on_a_pca_map_least_squares_are_the_axes(dims: int, width: int) -> None:
    vectors, new = RNG.normal(size=(40, width)), RNG.normal(size=(9, width))
    points = pca_map(vectors, dims=dims)
    placed = place_new(points, vectors, new, linear=True)
    assert placed == pytest.approx(place(new, PreviousMap(vectors, points), {}), abs=1e-5)
    turned = pca_map(vectors, pca_map(RNG.normal(size=(40, 12)), dims=dims), dims)
    assert place_new(turned, vectors, vectors[:5] * 3, linear=True) == pytest.approx(turned[:5], abs=1e-5)


def test_the_vector_of_an_example_lies_on_its_point() -> None:
    assert place_new(POINTS, VECTORS, VECTORS[[3, 17]] * 2, linear=False) == pytest.approx(POINTS[[3, 17]])


def test_a_vector_lies_at_the_weighted_mean_of_its_neighbours() -> None:
    unit, new = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (VECTORS, NEW))
    for row, got in zip(new, place_new(POINTS, VECTORS, NEW, linear=False), strict=True):
        near = sorted((math.dist(row, other), j) for j, other in enumerate(unit))[:10]
        low, high = 0.0, 100.0
        for _ in range(100):
            weights = [math.exp(-(d - near[0][0]) / ((low + high) / 2)) for d, _ in near]
            low, high = ((low + high) / 2, high) if sum(weights) < math.log2(11) else (low, (low + high) / 2)
        expected = sum(w * POINTS[j].astype(float) for w, (_, j) in zip(weights, near, strict=True)) / sum(weights)
        assert got == pytest.approx(expected, abs=1e-5)


@each("linear", [True, False])
@each("name", ODD)
def test_odd_vectors_are_placed(name: str, linear: bool) -> None:
    points = pca_map(ODD[name], dims=3)
    new = np.concatenate([ODD[name] * 2, np.zeros((1, ODD[name].shape[1]))])
    placed = place_new(points, ODD[name], new, linear=linear)
    assert placed.shape == (len(new), 3)
    assert placed.dtype == np.float32
    assert np.isfinite(placed).all()
