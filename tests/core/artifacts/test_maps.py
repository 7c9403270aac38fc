"""Maps of frames and layers: equal to the projections, cached one by one, with their measures of trust."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.artifacts import inspect_job
from core.artifacts.cache import numbered, write_arrays
from core.artifacts.maps import (
    LIVE,
    MOST_KEPT,
    job,
    layer_numbers,
    layer_vectors,
    layers_path,
    layers_source,
    map_request,
    read_honesty,
    read_maps,
    run_request,
    steps_source,
    write_layers,
)
from core.artifacts.measures import FrameMeasures, read_measures, spread_out
from core.artifacts.measures import job as measure
from core.errors import ConfigError, RunNotFoundError, StoreError
from core.representation import representation_metrics
from core.representation.neighbours import map_honesty
from core.representation.projections import MapSpec, map_frames
from core.store import RunRecord, Store
from core.workers import Cancelled
from tests.cases import each
from tests.core.artifacts.made import FRAMES, silent

UMAP = MapSpec("umap", parameters=(("neighbours", 5),))


@pytest.fixture
def store(filled: Store) -> Store:
    return filled


def placed(store: Store, run: RunRecord, spec: MapSpec, layers_at: int | None = None, progress: Any = silent) -> Path:
    request = map_request(run, spec, layers_at)
    return store.run_folder(run.id) / job(request, store.folder, progress)["folder"]


@pytest.mark.parametrize("spec", [UMAP, MapSpec(dims=3, mode="once")], ids=lambda s: s.key)
def test_every_frame_has_the_map_that_the_projection_gives(store: Store, run: RunRecord, spec: MapSpec) -> None:
    """Each map says how far it can be believed."""
    folder = placed(store, run, spec)
    expected = {
        found.step: found
        for found in map_frames(
            spec, FRAMES, FRAMES, lambda step: store.embeddings(run.id, step), lambda _: None, ended=True
        )
    }
    kept = read_maps(folder, FRAMES)
    assert list(kept) == list(FRAMES)
    for step in FRAMES:
        np.testing.assert_array_equal(kept[step], expected[step].points)
        honesty, measured_here = read_honesty(folder, step), map_honesty(store.embeddings(run.id, step), kept[step])
        assert honesty.trustworthiness == pytest.approx(measured_here.trustworthiness)
        assert honesty.overlap == pytest.approx(measured_here.overlap)
        np.testing.assert_allclose(honesty.per_point_overlap, measured_here.per_point_overlap, rtol=1e-6)
        assert honesty.k == measured_here.k


def test_the_maps_that_the_worker_drew_are_taken_over(store: Store, run: RunRecord) -> None:
    found = read_maps(placed(store, run, LIVE), FRAMES)
    for step in FRAMES:
        np.testing.assert_array_equal(found[step], store.map_points(run.id, step))


def test_only_a_map_that_is_missing_or_damaged_is_placed_again(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = placed(store, run, UMAP)
    before = read_maps(folder, FRAMES)
    numbered(folder, 2).unlink()
    numbered(folder, 4).write_bytes(b"damaged")
    assert list(read_maps(folder, FRAMES)) == [0, 6, 8]
    asked: list[int] = []
    read = Store.embeddings
    monkeypatch.setattr(Store, "embeddings", lambda self, i, step: asked.append(step) or read(self, i, step))
    placed(store, run, UMAP)
    assert 8 not in asked
    after = read_maps(folder, FRAMES)
    for step in FRAMES:
        np.testing.assert_array_equal(after[step], before[step])


def test_a_cancelled_job_leaves_whole_maps_that_the_next_one_goes_on_from(store: Store, run: RunRecord) -> None:
    def cancel(done: int, _total: int | None, _message: str) -> None:
        if done == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        placed(store, run, UMAP, progress=cancel)
    folder = steps_source(store, run).folder(store.run_folder(run.id), UMAP)
    assert len(read_maps(folder, FRAMES)) == 2
    assert not list(folder.glob("*.partial"))
    assert len(read_maps(placed(store, run, UMAP), FRAMES)) == len(FRAMES)


def test_layers_are_frames_too(store: Store, run: RunRecord) -> None:
    with pytest.raises(StoreError, match="not computed yet"):
        placed(store, run, LIVE, 4)
    inspect_job.job({"run": run.id, "what": "layers", "step": 4}, store.folder, silent)
    folder = placed(store, run, LIVE, 4)
    assert layers_source(store, run, 4).present == (1, 2)
    assert list(read_maps(folder, (1, 2))) == [1, 2]
    assert folder != steps_source(store, run).folder(store.run_folder(run.id), LIVE)


def test_layers_that_are_not_there_are_none(tmp_path: Path) -> None:
    layers = np.random.default_rng(0).standard_normal((12, 5, 3)).astype(np.float32)
    write_layers(tmp_path, 40, layers, stamp=7)
    assert layer_numbers(tmp_path, 40) == layer_numbers(tmp_path, 40, 7) == tuple(range(1, 13))
    np.testing.assert_array_equal(layer_vectors(tmp_path, 40, 12), layers[11])
    assert layer_numbers(tmp_path, 40, 8) == layer_numbers(tmp_path, 41) == (), "other weights, another step"
    for step, layer in ((41, 1), (40, 0), (40, 13)):
        assert layer_vectors(tmp_path, step, layer) is None
    write_layers(tmp_path, 40, layers, stamp=7, first=0)
    assert layer_numbers(tmp_path, 40) == tuple(range(12))
    np.testing.assert_array_equal(layer_vectors(tmp_path, 40, 0), layers[0])
    of_version_0_1 = {"layer_01": layers[0], "layer_02": layers[1]}
    write_arrays(layers_path(tmp_path, 40), of_version_0_1, {"layers": 2, "stamp": 7})
    assert layer_numbers(tmp_path, 40, 7) == (1, 2)
    layers_path(tmp_path, 40).write_bytes(b"damaged")
    assert layer_numbers(tmp_path, 40) == ()
    assert layer_vectors(tmp_path, 40, 1) is None


@each(
    ("request_", "error", "words"),
    [
        ({"spec": {"method": "magic"}}, ConfigError, "method"),
        ({"spec": {"dims": 4}}, ConfigError, "dims"),
        ({"layers_at": "../x"}, ConfigError, "layers_at"),
        ({"run": "../../etc"}, RunNotFoundError, "etc"),
        ({"attempt": 0}, StoreError, "has restarted"),
        ({"attempt": None}, StoreError, "has restarted"),
    ],
)
def test_another_request_is_refused(
    store: Store, run: RunRecord, request_: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        job(map_request(run, UMAP) | request_, store.folder, silent)
    if "spec" not in request_ and "layers_at" not in request_:
        with pytest.raises(error, match=words):
            measure(run_request(run) | request_, store.folder, silent)
    assert not list(store.run_folder(run.id).glob("m*-*"))


def test_the_maps_that_were_worked_at_last_are_kept(store: Store, run: RunRecord) -> None:
    folder = store.run_folder(run.id)
    live = placed(store, run, LIVE)
    for age in range(MOST_KEPT + 3):
        (folder / f"maps-old-{age:02d}").mkdir()
        os.utime(folder / f"maps-old-{age:02d}", (1e9 - age, 1e9 - age))
    new = placed(store, run, UMAP)
    kept = {path.name for path in folder.glob("maps-*")}
    assert kept == {live.name, new.name} | {f"maps-old-{age:02d}" for age in range(MOST_KEPT - 1)}


def test_maps_that_were_fitted_once_stand_apart_by_the_frame_that_they_were_fitted_on(
    store: Store, run: RunRecord
) -> None:
    once, folder = MapSpec(mode="once"), store.run_folder(run.id)
    whole = steps_source(store, run).folder(folder, once)
    assert steps_source(store, run, FRAMES[:-1]).folder(folder, once) != whole
    assert steps_source(store, run, FRAMES[:-1]).folder(folder, UMAP) == steps_source(store, run).folder(folder, UMAP)


# Measures


def measured(store: Store, run: RunRecord, step: int) -> FrameMeasures | None:
    return read_measures(store.run_folder(run.id), run.begun_attempt, step)


def test_measures_are_those_of_the_validation_texts_and_clusters_are_numbered_as_the_labels_they_share(
    store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure(run_request(run), store.folder, silent)
    held_out, labels = run.probe.held_out, np.asarray(run.probe.labels)
    for step in FRAMES:
        found = measured(store, run, step)
        expected = representation_metrics(store.embeddings(run.id, step)[:held_out], run.probe.labels[:held_out])
        assert {name: found.values[name] for name in expected} == pytest.approx(expected, nan_ok=True)
        assert found.values["within_between_ratio"] is not None
        assert set(found.clusters.tolist()) <= {0, 1}
        assert (found.clusters == labels).mean() >= 0.5
    monkeypatch.setattr(Store, "embeddings", lambda *_: pytest.fail("it was computed again"))
    assert measure(run_request(run), store.folder, silent) == first


@each("count", [1, 2, 3, 7, 24, 100])
def test_frames_are_measured_from_coarse_to_fine(count: int) -> None:
    steps = list(range(0, 3 * count, 3))
    order = spread_out(steps)
    assert sorted(order) == steps
    assert order[: min(2, count)] == [steps[0], steps[-1]][: min(2, count)]


def test_a_damaged_frame_costs_only_itself(store: Store, run: RunRecord) -> None:
    (store.run_folder(run.id) / "frame-0000004.safetensors").write_bytes(b"damaged")
    measure(run_request(run), store.folder, silent)
    assert [step for step in FRAMES if measured(store, run, step) is not None] == [0, 2, 6, 8]
    assert list(read_maps(placed(store, run, UMAP), FRAMES)) == [0, 2, 6, 8]
