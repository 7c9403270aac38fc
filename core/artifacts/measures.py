"""Representation measures and clusters of a run's frames: how a job computes them, and where they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.artifacts.cache import cached, numbered, read, write
from core.artifacts.maps import readable_steps, run_from_request, run_request
from core.events import Probe
from core.messages import Message
from core.representation.clusters import cluster
from core.representation.metrics import frame_measures
from core.store import RunRecord, Store
from core.workers import Progress

# Measures are computed for this many frames at most, the first and the last among them; clusters for all.
MEASURED_FRAMES = 24
# Pairs of a similarity task that are read, spread evenly over its rows.
PAIRS_MAX = 1_000


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


@dataclass(frozen=True, slots=True)
class SimilarityScores:
    """Spearman's rank correlation of cosines with the scores that people gave.

    Attributes:
        values: by step, None where it cannot be computed.
        stamps: by step, what identifies its weights.
        pairs: how many were read.
    """

    values: Mapping[int, float | None]
    stamps: Mapping[int, int]
    pairs: int


def read_similarity(folder: Path, task_id: str) -> SimilarityScores | None:
    """What `inspect_job` found out about a task; None before anybody asked. `folder` is the run's."""
    return read(SimilarityScores, similarity_path(folder, task_id))


def similarity_path(folder: Path, task_id: str) -> Path:
    """Where the scores lie in a run's folder. `task_id` is that of a task of the library, which has checked it."""
    return folder / "similarity" / f"{task_id}.safetensors"


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


def read_measures(folder: Path, step: int) -> FrameMeasures | None:
    """None before they are computed."""
    return read(FrameMeasures, numbered(folder, step))


def write_measures(folder: Path, step: int, found: FrameMeasures) -> None:
    """Raises: StoreError when the disk is full."""
    write(numbered(folder, step), found)


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Measure every frame that is there and not measured yet.

    Args:
        request: as `measures_request` makes it: "run" and "attempt".
    Returns: "frames", how many are measured.
    Raises: StoreError for frames that cannot be read or measures that cannot be written.
    """
    with closing(Store(store_folder)) as store:
        run = run_from_request(store, request)
        assert run.probe is not None
        steps = readable_steps(store, run)[0]
        chosen = set(measured_steps(run.config.probe.frame_steps or steps, steps))
        for done, step in enumerate(spread_out(steps)):
            progress(done, len(steps), Message("Measuring the frame of step {step}", step=step))
            _measure(store, run, run.probe, step, whole=step in chosen)
        return {"frames": len(steps)}


def measure_last(store: Store, run: RunRecord) -> None:
    """Measure the last frame of a finished run alone, unless that was done.

    Raises: StoreError for a frame that cannot be read or measures that cannot be written.
    """
    assert run.probe is not None
    _measure(store, run, run.probe, run.last_step, whole=True)


def spread_out(steps: Sequence[int]) -> list[int]:
    """All steps, the first and the last before those between, so that a curve is seen whole while it gets finer."""
    order, gap = dict.fromkeys([*steps[:1], *steps[-1:]]), len(steps)
    while gap > 1:
        gap = -(-gap // 2)
        order |= dict.fromkeys(steps[::gap])
    return list(order)


def _measure(store: Store, run: RunRecord, probe: Probe, step: int, *, whole: bool) -> None:
    """Cluster all examples of a frame, each cluster numbered as the label that most of it shares.

    Where the `whole` is wanted, also measure those that were not trained on.
    """

    def compute(_known: FrameMeasures | None) -> FrameMeasures:
        vectors = store.embeddings(run.id, step)
        clusters = cluster(vectors, len(probe.classes), probe.labels)
        values = frame_measures(vectors[: probe.held_out], probe.labels[: probe.held_out]) if whole else {}
        return FrameMeasures(values, clusters)

    path = numbered(measures_folder(store.run_folder(run.id), run.begun_attempt), step)
    cached(FrameMeasures, path, compute, lambda known: bool(known.values) or not whole)
