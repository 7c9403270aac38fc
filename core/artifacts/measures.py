"""Representation measures and clusters of a run's frames: the job that computes them, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.artifacts.cache import load_or_compute, numbered, read
from core.artifacts.maps import readable_steps, run_from_request
from core.artifacts.weights import probe_of
from core.events import VALIDATION
from core.messages import Message
from core.representation.clusters import cluster
from core.representation.metrics import frame_measures
from core.representation.projections.sequence import keyframes
from core.store import RunRecord, Store
from core.workers import Progress

# Maximum number of pairs read from a similarity task, spaced evenly over its rows.
PAIRS_MAX = 1_000
TRAINING_MEASURES = "training-measures.safetensors"
# Maximum number of training rows measured, spaced evenly over the split.
TRAINING_ROWS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class FrameMeasures:
    """Measures and clusters of one frame.

    Attributes:
        values: measures of the validation examples by name, None where undefined; empty if only clusters were computed.
        clusters: [N] cluster of every example.
    """

    values: Mapping[str, float | None]
    clusters: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SimilarityScores:
    """Spearman's rank correlation of cosines with human similarity scores.

    Attributes:
        values: by step, None where undefined.
        stamps: by step; each identifies the step's weights.
        pairs: number of pairs read.
    """

    values: Mapping[int, float | None]
    stamps: Mapping[int, int]
    pairs: int


@dataclass(frozen=True, slots=True)
class TrainingMeasures:
    """Measures of training rows with the last weights of a run.

    Attributes:
        values: by name, None where undefined.
        taken, rows: number of measured rows, and of rows of the training split.
        stamp: identifies the weights.
    """

    values: Mapping[str, float | None]
    taken: int
    rows: int
    stamp: int


def read_similarity(folder: Path, task_id: str) -> SimilarityScores | None:
    """Return the scores of a task, or None before `inspect_job` has computed them. Args: folder: the run's folder."""
    return read(SimilarityScores, similarity_path(folder, task_id))


def similarity_path(folder: Path, task_id: str) -> Path:
    """Return the file of a task's scores. `task_id` comes from the task library, which has validated it."""
    return folder / "similarity" / f"{task_id}.safetensors"


def measures_path(run_folder: Path, attempt: int, step: int) -> Path:
    """Return the file of a frame's measures. The attempt distinguishes a restarted run."""
    return numbered(run_folder / f"measures-{attempt}", step)


def read_measures(run_folder: Path, attempt: int, step: int) -> FrameMeasures | None:
    """Return the measures of a frame, or None before they are computed."""
    return read(FrameMeasures, measures_path(run_folder, attempt, step))


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Measure every frame that has no measures yet.

    Args:
        request: from `run_request`.
    Returns: "frames", the number of frames measured.
    Raises: StoreError for frames that cannot be read or measures that cannot be written.
    """
    with closing(Store(store_folder)) as store:
        run = run_from_request(store, request)
        steps = readable_steps(store, run)[0]
        # Clusters are computed for all frames.
        chosen = set(keyframes(run.config.probe.frame_steps or steps, steps, ended=True))
        for done, step in enumerate(spread_out(steps)):
            progress(done, len(steps), Message("Measuring the frame of step {step}", step=step))
            measure(store, run, step, whole=step in chosen)
        return {"frames": len(steps)}


def spread_out(steps: Sequence[int]) -> list[int]:
    """Order steps from coarse to fine, first and last first, so that any prefix spans the whole run."""
    order, gap = dict.fromkeys([*steps[:1], *steps[-1:]]), len(steps)
    while gap > 1:
        gap = -(-gap // 2)
        order |= dict.fromkeys(steps[::gap])
    return list(order)


def measure(store: Store, run: RunRecord, step: int, *, whole: bool) -> None:
    """Cluster the examples of a frame, unless a result exists, and match cluster numbers to the labels.

    Args:
        whole: also compute the measures of the held-out examples.
    Raises: StoreError for a frame that cannot be read or measures that cannot be written.
    """
    probe = probe_of(run)

    def compute(_known: FrameMeasures | None) -> FrameMeasures:
        vectors = store.embeddings(run.id, step)
        clusters = cluster(vectors, len(probe.classes), probe.labels)
        values = frame_measures(vectors[: probe.held_out], probe.labels[: probe.held_out]) if whole else {}
        # The run measured some of them before the vectors were rounded for the store, which matters near a collapse.
        for one in store.evaluations(run.id):
            if one.split == VALIDATION and one.step == step:
                values |= {name: one.values[name] for name in values.keys() & one.values.keys()}
        return FrameMeasures(values, clusters)

    path = measures_path(store.run_folder(run.id), run.begun_attempt, step)
    load_or_compute(FrameMeasures, path, compute, lambda known: bool(known.values) or not whole)
