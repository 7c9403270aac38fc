"""The maps of a run: how a job places its frames on them, and where they are kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.artifacts.array_files import read_about, read_array, write_arrays
from core.artifacts.layers import layer_count, layer_vectors
from core.artifacts.run_request import run_from_request, run_request
from core.errors import ConfigError, StoreError
from core.events import FloatArray
from core.messages import N_, Message
from core.representation.honesty import map_honesty
from core.representation.projections import MapSpec, Points, map_frames
from core.store import RunRecord, Store
from core.workers import Progress

# What the worker of a run draws itself, so that it is there with the frame.
LIVE = MapSpec()
# Kinds of maps (method, parameters, layers' step) that are kept of a run; one takes up to 10 MB, and can be made again.
MOST_KEPT = 12


@dataclass(frozen=True, slots=True)
class MapSource:
    """Frames in their order: those of a run's steps, or the layers of one step, from the first to the last.

    Attributes:
        planned: numbers of all frames that will come (steps, or layers 1 … L); present: of those that are there.
        ended: no more will come.
        read: the vectors [N, H] of a frame; raises StoreError.
        stamp: changes when frames that were there do.
    """

    planned: tuple[int, ...]
    present: tuple[int, ...]
    ended: bool
    read: Callable[[int], FloatArray]
    stamp: str

    def folder(self, run_folder: Path, spec: MapSpec) -> Path:
        """Where its maps lie in the run's folder; those fitted on the last frame beside those on another."""
        reference = f"-on-{self.present[-1]}" if spec.mode == "once" and self.present else ""
        return run_folder / f"maps-{spec.key}-{self.stamp}{reference}"


@dataclass(frozen=True, slots=True)
class KeptHonesty:
    """How far a kept map can be believed, see `core.representation.honesty.Honesty`."""

    trustworthiness: float
    overlap: float
    per_point_trustworthiness: NDArray[np.float32]
    per_point_overlap: NDArray[np.float32]
    k: int


def map_request(run: RunRecord, spec: MapSpec, layers_at: int | None = None) -> dict[str, Any]:
    """Return the request for the maps of a run's frames, or of the layers of one step."""
    return {**run_request(run), "spec": spec.as_dict(), "layers_at": layers_at}


def readable_steps(store: Store, run: RunRecord) -> tuple[tuple[int, ...], str]:
    """The steps whose frames can be read, and a sentence about the first that cannot; empty where all can."""
    readable, problem = [], ""
    for step in store.frame_steps(run.id):
        try:
            store.map_points(run.id, step)
            readable.append(step)
        except StoreError as error:
            problem = problem or str(error)
    return tuple(readable), problem


def steps_source(store: Store, run: RunRecord, present: tuple[int, ...] | None = None) -> MapSource:
    """The frames of a run: those that can be read, or, without looking, the given ones."""
    present = readable_steps(store, run)[0] if present is None else present
    planned = run.config.probe.frame_steps or present
    return MapSource(
        planned, present, run.status.ended, lambda step: store.embeddings(run.id, step), f"steps-{run.begun_attempt}"
    )


def layers_source(store: Store, run: RunRecord, step: int) -> MapSource:
    """The layers of a run at a step. Raises: StoreError before they are computed."""
    folder = store.run_folder(run.id)
    numbers = tuple(range(1, layer_count(folder, step) + 1))
    if not numbers:
        raise StoreError(
            "The layers of run {run} at step {step} are not computed yet: ask for them first.", run=run.id, step=step
        )

    def read(layer: int) -> FloatArray:
        vectors = layer_vectors(folder, step, layer)
        if vectors is None:
            raise StoreError(
                "Layer {layer} of step {step} cannot be read: open the layers again.", layer=layer, step=step
            )
        return vectors

    return MapSource(numbers, numbers, True, read, f"layers-{step}-{run.begun_attempt}")


def drop_old_maps(run_folder: Path, keep: Path) -> None:
    """Keep the maps of a run that were worked at last, `keep` and those that come with the frames among them."""
    folders = [folder for folder in run_folder.glob("maps-*") if folder != keep and LIVE.key not in folder.name]
    for folder in sorted(folders, key=_worked_at, reverse=True)[MOST_KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)


def _worked_at(folder: Path) -> float:
    """Seconds since the epoch; 0 for one that has gone meanwhile."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def map_path(folder: Path, number: int) -> Path:
    """The file of one frame's map."""
    return folder / f"{number:07d}.safetensors"


def write_map(folder: Path, number: int, points: Points, *, fitted: bool, honesty: KeptHonesty | None = None) -> None:
    """Keep a map, with its honesty once that is known. Raises: StoreError."""
    arrays: dict[str, NDArray[Any]] = {"points": points}
    about: dict[str, Any] = {"fitted": fitted}
    if honesty is not None:
        arrays["trustworthiness"] = honesty.per_point_trustworthiness
        arrays["overlap"] = honesty.per_point_overlap
        about |= {"trustworthiness": honesty.trustworthiness, "overlap": honesty.overlap, "k": honesty.k}
    write_arrays(map_path(folder, number), arrays, about)


def read_points(folder: Path, number: int) -> Points | None:
    """The places [N, D] of one frame, None before they are there."""
    return read_array(map_path(folder, number), "points")


def read_maps(folder: Path, numbers: Sequence[int]) -> dict[int, Points]:
    """The maps that are there, by the number of their frame."""
    there = {path.stem for path in folder.glob("*.safetensors")} if folder.exists() else set()
    wanted = [number for number in numbers if f"{number:07d}" in there]
    found = ((number, read_points(folder, number)) for number in wanted)
    return {number: points for number, points in found if points is not None}


def is_fitted(folder: Path, number: int) -> bool:
    """Whether a frame's map was fitted on its own vectors, or placed between two that were."""
    return bool((read_about(map_path(folder, number)) or {}).get("fitted", False))


def read_honesty(folder: Path, number: int) -> KeptHonesty | None:
    """How far a map can be believed, None before that is known."""
    path = map_path(folder, number)
    about = read_about(path)
    if about is None or "k" not in about:
        return None
    trustworthiness, overlap = read_array(path, "trustworthiness"), read_array(path, "overlap")
    if trustworthiness is None or overlap is None:
        return None
    return KeptHonesty(about["trustworthiness"], about["overlap"], trustworthiness, overlap, about["k"])


PLACING = N_("Placing the examples")


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Place every frame that is there and not placed yet, then measure how far each map can be believed.

    Args:
        request: as `map_request` makes it: "run" and "attempt"; "spec": a MapSpec as a dictionary; "layers_at": a step,
            for maps of its layers, or None.
    Returns: "folder", the maps' folder in the run's, and "frames", how many maps are there.
    Raises: ConfigError for another request, StoreError for frames that cannot be read or maps that cannot be written.
    """
    spec = MapSpec.from_dict(request.get("spec") or {})
    with closing(Store(store_folder)) as store:
        run = run_from_request(store, request)
        source = _source(store, run, request.get("layers_at"))
        folder = source.folder(store.run_folder(run.id), spec)
        _place(spec, source, folder, _done(store, run, spec, source, folder), progress)
        _measure(source, folder, progress)
        drop_old_maps(folder.parent, folder)
        return {"folder": folder.name, "frames": len(source.present)}


def _source(store: Store, run: RunRecord, layers_at: object) -> MapSource:
    if layers_at is None:
        return steps_source(store, run)
    if not isinstance(layers_at, int) or isinstance(layers_at, bool):
        raise ConfigError("layers_at", layers_at, "give a step, or nothing for the maps of all steps.")
    return layers_source(store, run, layers_at)


def _done(store: Store, run: RunRecord, spec: MapSpec, source: MapSource, folder: Path) -> dict[int, Points]:
    """The maps that are there already; those that the run's worker has drawn are taken over."""
    if spec == LIVE and source.stamp.startswith("steps"):
        for step in source.present:
            if read_points(folder, step) is None:
                write_map(folder, step, store.map_points(run.id, step), fitted=True)
    found = ((number, read_points(folder, number)) for number in source.present)
    return {number: points for number, points in found if points is not None}


def _place(spec: MapSpec, source: MapSource, folder: Path, done: dict[int, Points], progress: Progress) -> None:
    total = len(source.present)
    progress(len(done), total, Message(PLACING))
    for placed in map_frames(spec, source.planned, source.present, source.read, done.get, ended=source.ended):
        write_map(folder, placed.step, placed.points, fitted=placed.fitted)
        done[placed.step] = placed.points
        progress(len(done), total, Message(PLACING))


def _measure(source: MapSource, folder: Path, progress: Progress) -> None:
    """Newest first: that is the frame people look at."""
    total = len(source.present)
    for done, number in enumerate(reversed(source.present), start=1):
        points = read_points(folder, number)
        if points is None or read_honesty(folder, number) is not None:
            continue
        found = map_honesty(source.read(number), points)
        honesty = KeptHonesty(
            found.trustworthiness,
            found.overlap,
            found.per_point_trustworthiness.astype(np.float32),
            found.per_point_overlap.astype(np.float32),
            found.k,
        )
        write_map(folder, number, points, fitted=is_fitted(folder, number), honesty=honesty)
        progress(done, total, Message("Measuring how far the maps can be believed"))
