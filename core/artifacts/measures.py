"""Representation measures and clusters of a run's frames: how a job computes them, and where they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.artifacts.array_files import read_about, read_array, write_arrays
from core.artifacts.maps import readable_steps
from core.artifacts.run_request import run_from_request, run_request
from core.events import Probe
from core.messages import Message
from core.representation.clusters import cluster
from core.representation.metrics import frame_measures
from core.store import RunRecord, Store
from core.workers import Progress

# Measures are computed for this many frames at most, the first and the last among them; clusters for all.
MEASURED_FRAMES = 24


@dataclass(frozen=True, slots=True)
class FrameMeasures:
    """One frame.

    Attributes:
        values: measures of the validation examples by name, None where one cannot be computed; empty between the
            frames that are measured.
        clusters: [N] of all examples.
    """

    values: Mapping[str, float | None]
    clusters: NDArray[np.int64]


def measures_request(run: RunRecord) -> dict[str, Any]:
    """Return the request for the measures of a run's frames."""
    return run_request(run)


def measures_folder(run_folder: Path, attempt: int) -> Path:
    return run_folder / f"measures-{attempt}"


def measured_steps(planned: Sequence[int], present: Sequence[int]) -> tuple[int, ...]:
    """Which frames are measured: spread evenly over those that were planned, and the last one that is there."""
    places = np.linspace(0, len(planned) - 1, min(MEASURED_FRAMES, len(planned))).round().astype(int)
    chosen = {planned[place] for place in places}
    return tuple(step for step in present if step in chosen or step == present[-1])


def write_measures(folder: Path, step: int, found: FrameMeasures) -> None:
    """Raises: StoreError when the disk is full."""
    write_arrays(_path(folder, step), {"clusters": found.clusters}, {"values": dict(found.values)})


def read_measures(folder: Path, step: int) -> FrameMeasures | None:
    """None before they are computed."""
    about: dict[str, Any] | None = read_about(_path(folder, step))
    clusters = read_array(_path(folder, step), "clusters")
    if about is None or clusters is None:
        return None
    return FrameMeasures(about.get("values", {}), clusters)


def _path(folder: Path, step: int) -> Path:
    return folder / f"{step:07d}.safetensors"


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Measure every frame that is there and not measured yet.

    Args:
        request: as `measures_request` makes it: "run" and "attempt".
    Returns: "folder", where the measures lie in the run's folder.
    Raises: StoreError for frames that cannot be read or measures that cannot be written.
    """
    with closing(Store(store_folder)) as store:
        run = run_from_request(store, request)
        assert run.probe is not None
        folder = measures_folder(store.run_folder(run.id), run.begun_attempt)
        steps = readable_steps(store, run)[0]
        chosen = set(measured_steps(run.config.probe.frame_steps or steps, steps))
        for done, step in enumerate(spread_out(steps)):
            progress(done, len(steps), Message("Measuring the frame of step {step}", step=step))
            known = read_measures(folder, step)
            if known is None or (step in chosen and not known.values):
                write_measures(folder, step, _measured(store.embeddings(run.id, step), run.probe, step in chosen))
        return {"folder": folder.name, "frames": len(steps)}


def measure_last(store: Store, run: RunRecord) -> None:
    """Measure the last frame of a finished run alone, unless that was done.

    Raises: StoreError for a frame that cannot be read or measures that cannot be written.
    """
    assert run.probe is not None
    folder = measures_folder(store.run_folder(run.id), run.begun_attempt)
    known = read_measures(folder, run.last_step)
    if known is None or not known.values:
        write_measures(folder, run.last_step, _measured(store.embeddings(run.id, run.last_step), run.probe, True))


def spread_out(steps: Sequence[int]) -> list[int]:
    """All steps, the first and the last before those between, so that a curve is seen whole while it gets finer."""
    order, gap = dict.fromkeys([*steps[:1], *steps[-1:]]), len(steps)
    while gap > 1:
        gap = -(-gap // 2)
        order |= dict.fromkeys(steps[::gap])
    return list(order)


def _measured(vectors: NDArray[np.float32], probe: Probe, whole: bool) -> FrameMeasures:
    """Cluster all examples, each cluster numbered as the label that most of it shares.

    Where the `whole` is wanted, also measure those that were not trained on.
    """
    found = cluster(vectors, len(probe.classes), probe.labels)
    if not whole:
        return FrameMeasures({}, found)
    held_out, labels = vectors[: probe.held_out], probe.labels[: probe.held_out]
    return FrameMeasures(frame_measures(held_out, labels), found)
