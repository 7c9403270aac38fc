"""Maps of frames and layers: what the projections give, kept one by one, with how far they can be believed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.artifacts import inspect_job, maps
from core.artifacts.cache import numbered
from core.artifacts.maps import (
    LIVE,
    MOST_KEPT,
    job,
    layers_source,
    map_request,
    read_honesty,
    read_maps,
    read_points,
    steps_source,
)
from core.artifacts.measures import job as measure
from core.artifacts.measures import measured_steps, measures_folder, measures_request, read_measures, spread_out
from core.config import parse_config
from core.errors import ConfigError, RunNotFoundError, StoreError
from core.representation import representation_metrics
from core.representation.neighbours import map_honesty
from core.representation.projections import MapSpec, map_frames
from core.store import RunRecord, Store
from core.workers import Cancelled
from tests.cases import each
from tests.core.artifacts.made import FRAMES, MORE, recorded, silent

UMAP = MapSpec("umap", parameters=(("neighbours", 5),))


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, small_csv: Path) -> Path:
    """A store with one finished run."""
    folder = tmp_path_factory.mktemp("carried_out")
    draft = MORE | {
        "task": {"id": "file", "path": str(small_csv)},
        "encoder": {"id": str(tiny_encoder), "max_length": 32},
        "phases": [{"steps": 8, "batch_size": 8, "optimiser": {"learning_rate": 1e-2}}],
        "device": "cpu",
    }
    with closing(Store(folder / "runs")) as store:
        recorded(store, parse_config(draft))
    return folder / "runs"


@pytest.fixture
def store(carried_out: Path, tmp_path: Path) -> Iterator[Store]:
    with closing(Store(shutil.copytree(carried_out, tmp_path / "runs"))) as opened:
        yield opened


@pytest.fixture
def run(store: Store) -> RunRecord:
    return store.run(store.find("1"))


def placed(store: Store, run: RunRecord, spec: MapSpec, layers_at: int | None = None, progress: Any = silent) -> Path:
    request = map_request(run, spec, layers_at)
    return store.run_folder(run.id) / job(request, store.folder, progress)["folder"]


@pytest.mark.parametrize("spec", [UMAP, MapSpec(dims=3), MapSpec(mode="once"), MapSpec("tsne")], ids=lambda s: s.key)
def test_every_frame_has_the_map_that_the_projection_gives(store: Store, run: RunRecord, spec: MapSpec) -> None:
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


def test_each_map_says_how_far_it_can_be_believed(store: Store, run: RunRecord) -> None:
    folder = placed(store, run, UMAP)
    for step in FRAMES:
        points, honesty = read_points(folder, step), read_honesty(folder, step)
        assert points is not None
        assert honesty is not None
        expected = map_honesty(store.embeddings(run.id, step), points)
        assert honesty.trustworthiness == pytest.approx(expected.trustworthiness)
        assert honesty.overlap == pytest.approx(expected.overlap)
        np.testing.assert_allclose(honesty.per_point_overlap, expected.per_point_overlap, rtol=1e-6)
        assert honesty.k == expected.k


def test_the_maps_that_the_worker_drew_are_taken_over(store: Store, run: RunRecord) -> None:
    folder = placed(store, run, LIVE)
    for step in FRAMES:
        np.testing.assert_array_equal(read_points(folder, step), store.map_points(run.id, step))


def test_what_is_there_is_not_computed_again(store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = placed(store, run, UMAP)
    before = {step: read_points(folder, step) for step in FRAMES}
    numbered(folder, 4).unlink()
    asked: list[int] = []
    read = Store.embeddings
    monkeypatch.setattr(Store, "embeddings", lambda self, i, step: asked.append(step) or read(self, i, step))
    placed(store, run, UMAP)
    assert 8 not in asked
    for step in FRAMES:
        np.testing.assert_array_equal(read_points(folder, step), before[step])


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


@pytest.mark.parametrize(
    "request_",
    [{"spec": {"method": "magic"}}, {"spec": {}, "layers_at": "../x"}, {"spec": {"dims": 4}}],
)
def test_another_request_is_refused(store: Store, run: RunRecord, request_: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        job(measures_request(run) | request_, store.folder, silent)


def test_a_run_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(RunNotFoundError):
        job({"run": "../../etc", "spec": {}}, store.folder, silent)


def test_a_damaged_map_is_placed_again(store: Store, run: RunRecord) -> None:
    folder = placed(store, run, UMAP)
    good = read_points(folder, 8)
    numbered(folder, 8).write_bytes(b"damaged")
    assert read_points(folder, 8) is None
    np.testing.assert_array_equal(read_points(placed(store, run, UMAP), 8), good)


def test_what_was_asked_before_a_run_began_again_is_refused(store: Store, run: RunRecord) -> None:
    asked = map_request(run, UMAP)
    with pytest.raises(StoreError, match="begun again"):
        job(asked | {"attempt": run.begun_attempt - 1}, store.folder, silent)
    with pytest.raises(StoreError, match="begun again"):
        measure(measures_request(run) | {"attempt": run.begun_attempt + 1}, store.folder, silent)
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


def test_measures_are_those_of_the_validation_texts(store: Store, run: RunRecord) -> None:
    measure(measures_request(run), store.folder, silent)
    folder = measures_folder(store.run_folder(run.id), run.begun_attempt)
    assert run.probe is not None
    held_out = run.probe.held_out
    for step in FRAMES:
        found = read_measures(folder, step)
        assert found is not None
        vectors = store.embeddings(run.id, step)
        expected = representation_metrics(vectors[:held_out], run.probe.labels[:held_out])
        assert {name: found.values[name] for name in expected} == pytest.approx(expected, nan_ok=True)
        assert found.values["within_between_ratio"] is not None
        assert found.clusters.shape == (len(run.probe.ids),)
        assert set(found.clusters.tolist()) <= {0, 1}


def test_clusters_are_numbered_as_the_labels_that_most_of_them_share(store: Store, run: RunRecord) -> None:
    measure(measures_request(run), store.folder, silent)
    assert run.probe is not None
    labels = np.asarray(run.probe.labels)
    for step in FRAMES:
        found = read_measures(measures_folder(store.run_folder(run.id), run.begun_attempt), step)
        assert found is not None
        assert (found.clusters == labels).mean() >= 0.5


def test_measures_are_computed_once(store: Store, run: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    first = measure(measures_request(run), store.folder, silent)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it was computed again")

    monkeypatch.setattr(Store, "embeddings", never)
    assert measure(measures_request(run), store.folder, silent) == first


def test_at_most_24_frames_are_measured_and_all_have_clusters() -> None:
    planned = tuple(range(0, 500, 5))
    chosen = measured_steps(planned, planned)
    assert len(chosen) == 24
    assert {0, 495} <= set(chosen)
    assert measured_steps(planned, planned[:31])[-1] == 150


@each("count", [1, 2, 3, 7, 24, 100])
def test_frames_are_measured_from_coarse_to_fine(count: int) -> None:
    steps = list(range(0, 3 * count, 3))
    order = spread_out(steps)
    assert sorted(order) == steps
    assert order[: min(2, count)] == [steps[0], steps[-1]][: min(2, count)]


def test_its_job_is_what_the_registry_of_jobs_names() -> None:
    from core.workers.job_kinds import work_of

    assert work_of("map") is maps.job
    assert work_of("measures") is measure


def test_a_damaged_frame_costs_only_itself(store: Store, run: RunRecord) -> None:
    (store.run_folder(run.id) / "frame-0000004.safetensors").write_bytes(b"damaged")
    measure(measures_request(run), store.folder, silent)
    folder = measures_folder(store.run_folder(run.id), run.begun_attempt)
    assert [step for step in FRAMES if read_measures(folder, step) is not None] == [0, 2, 6, 8]
    assert list(read_maps(placed(store, run, UMAP), FRAMES)) == [0, 2, 6, 8]
