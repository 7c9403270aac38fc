"""Representation measures and clusters of a run's frames, once `measures_job` has computed them; imports little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.artifacts.array_files import read_about, read_array, write_arrays
from core.artifacts.run_request import run_request
from core.store import RunRecord

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
    """What `measures_job` is asked for the measures of a run's frames."""
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
