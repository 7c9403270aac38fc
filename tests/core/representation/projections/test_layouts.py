"""Requirements that every registered projection must meet."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.manifold import TSNE, trustworthiness
from threadpoolctl import threadpool_limits

from core.parameters import Value
from core.representation.geometry import normalised
from core.representation.projections import PROJECTIONS, MapSpec, Projection, library_projections, stable_projections
from core.representation.projections.copies import find_copies
from core.representation.projections.descent import MOST_AT_ONCE
from core.representation.projections.entry import PreviousMap
from core.representation.projections.tsne import affinities
from tests.cases import each
from tests.core.representation.projections.clouds import ODD, clusters, divergence, fitted, moved, noisy, umap_learn

ROOT = Path(__file__).resolve().parents[4]
CLOUD = clusters()
PLACING = [entry for entry in stable_projections().values() if entry.onto is not None]


def settings(entry: Projection) -> dict[str, Value]:
    return MapSpec(entry.name).settings


@cache
def cloud_map(name: str, dims: int) -> np.ndarray:
    """Return the map of CLOUD, fitted once."""
    return fitted(PROJECTIONS[name], CLOUD, dims)


@each("dims", [2, 3])
@each("entry", stable_projections().values())
class TestFit:
    def test_points_are_centred_single_precision(self, entry: Projection, dims: int) -> None:
        points = cloud_map(entry.name, dims)
        assert points.shape == (120, dims)
        assert points.dtype == np.float32
        assert points.mean(0) == pytest.approx(np.zeros(dims), abs=1e-4)

    def test_classes_lie_apart(self, entry: Projection, dims: int) -> None:
        points = cloud_map(entry.name, dims)
        centres = np.array([points[label::3].mean(0) for label in range(3)])
        own = np.linalg.norm(points[:, None] - centres, axis=2).argmin(1)
        assert (own == np.arange(120) % 3).all()

    def test_the_same_vectors_give_the_same_digits(self, entry: Projection, dims: int) -> None:
        assert (cloud_map(entry.name, dims) == fitted(entry, CLOUD.copy(), dims)).all()

    def test_the_same_vectors_do_not_move(self, entry: Projection, dims: int) -> None:
        first = cloud_map(entry.name, dims)
        assert moved(first, fitted(entry, CLOUD, dims, PreviousMap(CLOUD, first))).max() < 1e-5

    def test_a_little_noise_moves_points_a_little(self, entry: Projection, dims: int) -> None:
        first = cloud_map(entry.name, dims)
        assert moved(first, fitted(entry, noisy(CLOUD, 0.01), dims, PreviousMap(CLOUD, first))).max() < 0.05

    def test_a_map_follows_a_model_that_has_changed(self, entry: Projection, dims: int) -> None:
        cloud = np.random.default_rng(5).normal(size=CLOUD.shape)
        points = fitted(entry, cloud, dims)
        for share in (0.2, 0.4, 0.6, 0.8, 1.0):
            after = (1 - share) * cloud + share * CLOUD
            points = fitted(entry, after, dims, PreviousMap((1 - share + 0.2) * cloud + (share - 0.2) * CLOUD, points))
        cold = cloud_map(entry.name, dims)
        trust = [trustworthiness(normalised(CLOUD), p, n_neighbors=15) for p in (points, cold)]
        assert trust[0] > trust[1] - 0.02

    @each("name", ODD)
    def test_odd_vectors_give_finite_points(self, entry: Projection, dims: int, name: str) -> None:
        first = fitted(entry, ODD[name], dims)
        again = fitted(entry, ODD[name], dims, PreviousMap(ODD[name], first))
        other = fitted(entry, ODD[name][::-1] * 2, dims, PreviousMap(ODD[name], first))
        for points in (first, again, other):
            assert points.shape == (len(ODD[name]), dims)
            assert np.isfinite(points).all()
        assert again == pytest.approx(first, abs=1e-6 if entry.name == "pca" else 1e-4)

    def test_equal_vectors_lie_on_one_point(self, entry: Projection, dims: int) -> None:
        assert fitted(entry, ODD["all rows equal"], dims) == pytest.approx(np.zeros((20, dims)), abs=1e-5)

    def test_a_map_on_one_point_comes_apart_again(self, entry: Projection, dims: int) -> None:
        flat = np.zeros((120, dims), np.float32)
        assert np.ptp(fitted(entry, CLOUD, dims, PreviousMap(np.ones_like(CLOUD), flat)), axis=0).min() > 0.1


@each("entry", PLACING)
class TestPlace:
    def test_the_reference_lies_near_its_own_points(self, entry: Projection) -> None:
        points = cloud_map(entry.name, 2)
        placed = entry.onto(CLOUD, PreviousMap(CLOUD, points), settings(entry))
        assert placed.dtype == np.float32
        assert np.median(moved(points, placed)) < 0.05

    def test_others_lie_with_their_class(self, entry: Projection) -> None:
        points = cloud_map(entry.name, 2)
        placed = entry.onto(noisy(CLOUD, 0.2)[:30], PreviousMap(CLOUD, points), settings(entry))
        centres = np.array([points[label::3].mean(0) for label in range(3)])
        assert (np.linalg.norm(placed[:, None] - centres, axis=2).argmin(1) == np.arange(30) % 3).all()

    @each("name", ODD)
    def test_odd_vectors_are_placed(self, entry: Projection, name: str) -> None:
        reference = PreviousMap(ODD[name], fitted(entry, ODD[name]))
        assert np.isfinite(entry.onto(ODD[name] * 2, reference, settings(entry))).all()


@each("dims", [2, 3])
@each("entry", library_projections().values())
class TestLibraries:
    """A library's maps are only aligned to the previous map, and otherwise unchanged."""

    @staticmethod
    def peer(vectors: np.ndarray, dims: int, start: np.ndarray | None) -> np.ndarray:
        rows = normalised(vectors).astype(np.float32)
        settings = {"n_neighbors": 15, "min_dist": 0.1, "init": "spectral" if start is None else start}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return umap_learn().UMAP(n_components=dims, random_state=0, n_jobs=1, **settings).fit_transform(rows)

    @pytest.mark.slow
    def test_the_first_frame_is_the_librarys_own(self, entry: Projection, dims: int) -> None:
        theirs = self.peer(CLOUD, dims, None)
        assert cloud_map(entry.name, dims) == pytest.approx(theirs - theirs.mean(0), abs=1e-4)

    @pytest.mark.slow
    def test_later_frames_start_from_the_one_before(self, entry: Projection, dims: int) -> None:
        first, later = cloud_map(entry.name, dims), noisy(CLOUD, 0.1)
        theirs = self.peer(later, dims, first.copy())
        ours = fitted(entry, later, dims, PreviousMap(CLOUD, first))
        between = [np.linalg.norm(points[:, None] - points[None], axis=2) for points in (theirs, ours)]
        assert between[1] == pytest.approx(between[0], rel=1e-3, abs=1e-2)  # the same map, rotated
        assert ours.mean(0) == pytest.approx(np.zeros(dims), abs=1e-3)

    @pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
    def test_odd_vectors_have_a_place(self, entry: Projection, dims: int, quick: bool) -> None:
        for name, vectors in ODD.items():
            # umap-learn compiles for seconds before its first map. It never receives so few distinct vectors.
            if (len(find_copies(vectors).first) < dims + 3) == quick:
                points = fitted(entry, vectors, dims)
                assert points.shape == (len(vectors), dims), name
                assert np.isfinite(points).all(), name
                again = fitted(entry, vectors * 2, dims, PreviousMap(vectors, points))
                assert np.isfinite(again).all(), name


@pytest.mark.slow
@each("name", ["umap", "tsne"])
def test_our_own_maps_are_as_trustworthy_as_their_peers(name: str) -> None:
    cloud = normalised(clusters(300, 24, 4, apart=1.5))
    settings = {"random_state": 0, "n_jobs": 1}
    peer = umap_learn().UMAP(**settings) if name == "umap" else TSNE(init="pca", **settings)
    maps = fitted(PROJECTIONS[name], cloud), peer.fit_transform(cloud)
    ours, theirs = (trustworthiness(cloud, points, n_neighbors=15) for points in maps)
    assert ours > theirs - 0.01


@pytest.mark.slow
@each("cloud", ["clusters", "noise"])
def test_tsnes_divergence_settles_as_its_peers(cloud: str) -> None:
    noise = np.random.default_rng(4).normal(size=(300, 24))
    vectors = clusters(300, 24, 4, apart=3.0) if cloud == "clusters" else noise
    graph = affinities(vectors, 30.0)
    peer = TSNE(init="pca", random_state=0, n_jobs=1).fit_transform(normalised(vectors))
    assert divergence(fitted(PROJECTIONS["tsne"], vectors), graph) < 1.05 * divergence(peer, graph)


@pytest.mark.parametrize("name", ["tsne", "umap"])
def test_many_points_meet_in_groups_and_the_seed_says_in_which(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.representation.projections.descent.MOST_AT_ONCE", 50)
    entry = PROJECTIONS[name]
    first, again, other = (entry.fit(CLOUD, 2, settings(entry), seed, None) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()
    assert trustworthiness(normalised(CLOUD), first, n_neighbors=15) > 0.8
    assert len(CLOUD) < MOST_AT_ONCE


PROGRAM = """
import hashlib, numpy as np
from core.representation.projections import MapSpec, map_frames
rng = np.random.default_rng(0)
frames = {step: rng.normal(size=(60, 8)) + step * rng.normal(size=8) for step in range(4)}
for method in ("pca", "tsne", "umap"):
    for dims in (2, 3):
        spec = MapSpec(method, dims)
        for placed in map_frames(spec, [0, 1, 2, 3], list(frames), frames.__getitem__, lambda step: None, ended=True):
            print(spec.key, placed.step, hashlib.sha256(placed.points.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_another_process_gives_the_same_digits(capsys: pytest.CaptureFixture[str]) -> None:
    with threadpool_limits(1):
        exec(PROGRAM, {})
    here = capsys.readouterr().out
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout == here
    assert here.count("\n") == 24
