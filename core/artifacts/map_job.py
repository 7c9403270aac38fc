"""Placing a run's frames on a map, as a job of a warm process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from core.artifacts.maps import (
    LIVE,
    KeptHonesty,
    MapSource,
    drop_old_maps,
    is_fitted,
    layers_source,
    read_honesty,
    read_points,
    steps_source,
    write_map,
)
from core.artifacts.run_request import run_from_request
from core.errors import ConfigError
from core.messages import N_, Message
from core.representation.honesty import map_honesty
from core.representation.projections import MapSpec, Points, map_frames
from core.store import RunRecord, Store
from core.workers import Progress

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
