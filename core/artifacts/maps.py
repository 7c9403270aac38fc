"""The maps of a run: how a job places its frames on them, and where they are kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.artifacts.cache import numbered, numbers, read, write
from core.artifacts.layers import layer_count, layer_vectors
from core.artifacts.weights import probe_of
from core.errors import ConfigError, StoreError
from core.events import FloatArray
from core.messages import N_, Message
from core.representation.neighbours import Honesty, map_honesty
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
class FrameMap:
    """The places [N, D] of one frame."""

    points: Points


def run_request(run: RunRecord) -> dict[str, Any]:
    """How a request names a run. What is asked after it began again is not what was asked before."""
    return {"run": run.id, "attempt": run.begun_attempt}


def run_from_request(store: Store, request: Mapping[str, Any]) -> RunRecord:
    """The run that a request names.

    Raises: RunNotFoundError; StoreError for one that has not started, or has begun again since, so that its frames may
        be others by now.
    """
    run = store.run(str(request.get("run")))
    probe_of(run)
    if run.begun_attempt != request.get("attempt"):
        raise StoreError("Run {run} has begun again since this was asked: open its page again.", run=run.id)
    return run


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


def read_points(folder: Path, number: int) -> Points | None:
    """The places [N, D] of one frame, None before they are there."""
    found = read(FrameMap, numbered(folder, number))
    return None if found is None else found.points


def read_maps(folder: Path, wanted: Sequence[int]) -> dict[int, Points]:
    """The maps that are there, by the number of their frame."""
    there = set(numbers(folder))
    found = ((number, read_points(folder, number)) for number in wanted if number in there)
    return {number: points for number, points in found if points is not None}


def honesty_path(folder: Path, number: int) -> Path:
    """The file with how far one frame's map can be believed."""
    return numbered(folder / "honesty", number)


def read_honesty(folder: Path, number: int) -> Honesty | None:
    """How far a map can be believed, None before that is known."""
    return read(Honesty, honesty_path(folder, number))


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
        done = _done(store, run, spec, source, folder)
        _place(spec, source, folder, done, progress)
        _measure(source, folder, done, progress)
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
                write(numbered(folder, step), FrameMap(store.map_points(run.id, step)))
    return read_maps(folder, source.present)


def _place(spec: MapSpec, source: MapSource, folder: Path, done: dict[int, Points], progress: Progress) -> None:
    total = len(source.present)
    progress(len(done), total, Message(PLACING))
    for placed in map_frames(spec, source.planned, source.present, source.read, done.get, ended=source.ended):
        write(numbered(folder, placed.step), FrameMap(placed.points))
        done[placed.step] = placed.points
        progress(len(done), total, Message(PLACING))


def _measure(source: MapSource, folder: Path, maps: Mapping[int, Points], progress: Progress) -> None:
    """Newest first: that is the frame people look at."""
    for done, number in enumerate(reversed(source.present), start=1):
        if number in maps and read_honesty(folder, number) is None:
            write(honesty_path(folder, number), _single_precision(map_honesty(source.read(number), maps[number])))
            progress(done, len(source.present), Message("Measuring how far the maps can be believed"))


def _single_precision(found: Honesty) -> Honesty:
    return replace(
        found,
        per_point_trustworthiness=found.per_point_trustworthiness.astype(np.float32),
        per_point_overlap=found.per_point_overlap.astype(np.float32),
    )
