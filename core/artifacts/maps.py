"""The maps of a run and the vectors of its layers: their files, and the job that computes maps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from core.artifacts.cache import ABOUT, UNREADABLE, numbered, numbers, read, write, write_arrays
from core.artifacts.weights import probe_of
from core.errors import ConfigError, StoreError
from core.events import FloatArray
from core.messages import Message
from core.representation.neighbours import Honesty, map_honesty
from core.representation.projections import MapSpec, Points, map_frames
from core.store import RunRecord, Store
from core.workers import Progress

# The map that the run's worker computes with each frame.
LIVE = MapSpec()
# Map folders kept per run (one per spec and layer step). Each takes up to 10 MB and can be recomputed.
MOST_KEPT = 12
HONESTY = "honesty"
# Precedes the number of a layer in its name in a file.
LAYER = "layer_"


@dataclass(frozen=True, slots=True)
class MapSource:
    """The frames of a sequence of maps: the steps of a run, or the layers of one step.

    Attributes:
        planned: numbers of all planned frames (steps, or layers); present: numbers of the frames that exist.
        ended: whether no more frames will come.
        read: returns the vectors [N, H] of a frame; raises StoreError.
        stamp: changes when existing frames change.
    """

    planned: tuple[int, ...]
    present: tuple[int, ...]
    ended: bool
    read: Callable[[int], FloatArray]
    stamp: str

    def folder(self, run_folder: Path, spec: MapSpec) -> Path:
        """Return the folder of the maps in the run's folder. In mode "once", there is one per reference frame."""
        reference = f"-on-{self.present[-1]}" if spec.mode == "once" and self.present else ""
        return run_folder / f"maps-{spec.key}-{self.stamp}{reference}"


@dataclass(frozen=True, slots=True)
class FrameMap:
    """The coordinates [N, D] of one frame."""

    points: Points


def run_request(run: RunRecord) -> dict[str, Any]:
    """Return the fields that identify a run in a request. The attempt distinguishes a restarted run."""
    return {"run": run.id, "attempt": run.begun_attempt}


def run_from_request(store: Store, request: Mapping[str, Any]) -> RunRecord:
    """Return the run that a request names.

    Raises: RunNotFoundError; StoreError for a run that has not started, or has restarted since the request, because its
        frames may differ.
    """
    run = store.run(str(request.get("run")))
    probe_of(run)
    if run.begun_attempt != request.get("attempt"):
        raise StoreError("Run {run} has restarted since this request: open its page again.", run=run.id)
    return run


def map_request(run: RunRecord, spec: MapSpec, layers_at: int | None = None) -> dict[str, Any]:
    """Return the request for the maps of a run's frames, or of the layers of one step."""
    return {**run_request(run), "spec": spec.as_dict(), "layers_at": layers_at}


def readable_steps(store: Store, run: RunRecord) -> tuple[tuple[int, ...], str]:
    """Return the steps with readable frames, and a sentence on the first unreadable frame ("" if all are readable)."""
    readable, problem = [], ""
    for step in store.frame_steps(run.id):
        try:
            store.map_points(run.id, step)
            readable.append(step)
        except StoreError as error:
            problem = problem or str(error)
    return tuple(readable), problem


def steps_source(store: Store, run: RunRecord, present: tuple[int, ...] | None = None) -> MapSource:
    """Return the frames of a run as a source: the steps in `present` if given, else all readable ones."""
    present = readable_steps(store, run)[0] if present is None else present
    planned = run.config.probe.frame_steps or present
    return MapSource(
        planned, present, run.status.ended, lambda step: store.embeddings(run.id, step), f"steps-{run.begun_attempt}"
    )


def layers_source(store: Store, run: RunRecord, step: int) -> MapSource:
    """Return the layers of a run at a step as a source. Raises: StoreError before they are computed."""
    folder = store.run_folder(run.id)
    layers = layer_numbers(folder, step)
    if not layers:
        raise StoreError(
            "The layers of run {run} at step {step} are not computed yet: request them first.", run=run.id, step=step
        )

    def read_layer(layer: int) -> FloatArray:
        vectors = layer_vectors(folder, step, layer)
        if vectors is None:
            raise StoreError(
                "Layer {layer} of step {step} cannot be read: open the layers again.", layer=layer, step=step
            )
        return vectors

    return MapSource(layers, layers, True, read_layer, f"layers-{step}-{run.begun_attempt}")


def layers_path(folder: Path, step: int) -> Path:
    """Return the file of a step's layers in a run's folder."""
    return numbered(folder / "layers", step)


def layer_steps(folder: Path) -> tuple[int, ...]:
    """Return the steps with computed layers, ascending. Layers outlive the weights. Args: folder: the run's folder."""
    return numbers(folder / "layers")


def write_layers(folder: Path, step: int, layers: FloatArray, stamp: int, first: int = 1) -> None:
    """Write consecutive layers [L, N, H].

    Args:
        stamp: identifies the weights that produced them.
        first: number of the first layer; 0 is the embeddings.
    Raises: StoreError.
    """
    arrays = {_name(number): vectors for number, vectors in enumerate(layers, first)}
    write_arrays(layers_path(folder, step), arrays, {"stamp": stamp})


def layer_numbers(folder: Path, step: int, stamp: int | None = None) -> tuple[int, ...]:
    """Return the numbers of the layers stored for a step; none for layers from weights other than `stamp`, if given."""
    try:
        with safe_open(layers_path(folder, step), "np") as file:
            if stamp not in (None, json.loads(file.metadata()[ABOUT])["stamp"]):
                return ()
            return tuple(sorted(int(name.removeprefix(LAYER)) for name in file.keys()))  # noqa: SIM118 not a mapping
    except UNREADABLE:
        return ()


def layer_vectors(folder: Path, step: int, layer: int) -> FloatArray | None:
    """Return the pooled vectors [N, H] after block `layer` (0: of the embeddings), or None before they are computed."""
    try:
        with safe_open(layers_path(folder, step), "np") as file:
            vectors: FloatArray = file.get_tensor(_name(layer))
    except (OSError, SafetensorError):
        return None
    return vectors


def _name(layer: int) -> str:
    return f"{LAYER}{layer:02d}"


def read_maps(folder: Path, wanted: Sequence[int]) -> dict[int, Points]:
    """Return the coordinates [N, D] of the wanted frames that have a map, by frame number."""
    found = ((number, read(FrameMap, numbered(folder, number))) for number in wanted)
    return {number: one.points for number, one in found if one is not None}


def read_honesty(folder: Path, number: int) -> Honesty | None:
    """Return the honesty of one frame's map, or None before it is measured."""
    return read(Honesty, numbered(folder / HONESTY, number))


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Compute the missing maps, then measure the honesty of each map.

    Args:
        request: from `map_request`: "run" and "attempt"; "spec": a MapSpec as a dictionary; "layers_at": a step, for
            maps of its layers, or None.
    Returns: "folder", the name of the maps' folder, and "frames", the number of frames present.
    Raises: ConfigError for an invalid request, StoreError for frames that cannot be read or maps that cannot be
        written.
    """
    spec, layers_at = MapSpec(**(request.get("spec") or {})), request.get("layers_at")
    if layers_at is not None and (not isinstance(layers_at, int) or isinstance(layers_at, bool)):
        raise ConfigError("layers_at", layers_at, "give a step, or nothing for the maps of all steps.")
    with closing(Store(store_folder)) as store:
        run = run_from_request(store, request)
        source = steps_source(store, run) if layers_at is None else layers_source(store, run, layers_at)
        folder, count = source.folder(store.run_folder(run.id), spec), len(source.present)
        maps = read_maps(folder, source.present)
        if spec == LIVE and layers_at is None:  # already computed by the run's worker
            for step in set(source.present) - set(maps):
                maps[step] = store.map_points(run.id, step)
                write(numbered(folder, step), FrameMap(maps[step]))
        placing = Message("Placing the examples")
        progress(len(maps), count, placing)
        for placed in map_frames(spec, source.planned, source.present, source.read, maps.get, ended=source.ended):
            write(numbered(folder, placed.step), FrameMap(placed.points))
            maps[placed.step] = placed.points
            progress(len(maps), count, placing)
        # Measure the honesty of the newest map first, because users look at the newest frame.
        for done, number in enumerate(reversed(source.present), start=1):
            if number in maps and read_honesty(folder, number) is None:
                found = map_honesty(source.read(number), maps[number])
                per_point = ("per_point_trustworthiness", "per_point_overlap")
                single = {name: getattr(found, name).astype(np.float32) for name in per_point}
                write(numbered(folder / HONESTY, number), replace(found, **single))
                progress(done, len(source.present), Message("Measuring the trustworthiness of the maps"))
        # Keep these maps, those that come with frames, and the newest of the others.
        others = [one for one in folder.parent.glob("maps-*") if one != folder and LIVE.key not in one.name]
        written = dict[Path, float]()
        for one in others:
            with suppress(FileNotFoundError):  # another job may delete the same maps
                written[one] = one.stat().st_mtime
        for old in sorted(written, key=lambda one: written[one], reverse=True)[MOST_KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
        return {"folder": folder.name, "frames": count}
