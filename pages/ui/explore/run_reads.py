"""Cached reads of one run's frames. A cache key holds everything that its value depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.artifacts.maps import (
    LIVE,
    MapSource,
    layers_source,
    read_honesty,
    read_maps,
    readable_steps,
    steps_source,
)
from core.artifacts.measures import FrameMeasures, measures_folder, read_measures
from core.config import RunConfig
from core.config.score_source import predictions_note, score_notes_of
from core.events import Evaluation, FloatArray, Probe
from core.representation.examples import ExampleScores, example_scores
from core.representation.neighbours import Honesty, Metric, NeighbourIndex
from core.representation.projections import MapSpec, Points
from core.store import RunRecord, Store
from pages.ui.reads import Given, Made, cached


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames on the page: one per step of a run, or one per layer at a single step.

    Attributes:
        layers_at: the step whose layers these are; None for one frame per step.
        numbers: steps or layers of the frames, ascending.
        source: the vectors that maps of these frames are computed from.
    """

    store: Store
    run: RunRecord
    probe: Probe
    layers_at: int | None
    numbers: tuple[int, ...]
    source: MapSource

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """The cache key of these frames."""
        return str(self.store.folder), self.run.id, self.run.begun_attempt, self.layers_at

    @property
    def folder(self) -> Path:
        return self.store.run_folder(self.run.id)

    def step_of(self, number: int) -> int:
        """Return the training step of a frame."""
        return number if self.layers_at is None else self.layers_at

    def vectors(self, number: int) -> FloatArray:
        """Return the vectors [N, H] of one frame. Raises: StoreError."""
        return self.source.read(number)


def kept(max_entries: int) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Cache a function of frames by their key.

    The key does not hold the frame numbers, which grow while a run is active. A function of all frames therefore takes
    the numbers as an argument.
    """
    return cached(max_entries, Frames, MapSpec)


def frames_of(store: Store, run: RunRecord, layers_at: int | None) -> Frames:
    """Return the frames of a run. Raises: StoreError for layers that are not computed."""
    assert run.probe is not None
    if layers_at is not None:
        source = layers_source(store, run, layers_at)
    else:
        source = steps_source(store, run, readable(store, run)[0])
    return Frames(store, run, run.probe, layers_at, source.present, source)


def readable(store: Store, run: RunRecord) -> tuple[tuple[int, ...], str]:
    """Return the steps with readable frames, and a sentence about the first unreadable one."""
    return _readable(store, run, tuple(store.frame_steps(run.id)))


@cached(64)
def _readable(store: Store, run: RunRecord, steps: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return readable_steps(store, run)


def maps(frames: Frames, spec: MapSpec) -> dict[int, Points]:
    """Return the maps [N, D] computed so far, by frame number."""
    if spec == LIVE and frames.layers_at is None:
        return _live_maps(frames, frames.numbers)
    folder = frames.source.folder(frames.folder, spec)
    return _kept_maps(frames, spec, frozenset(path.name for path in folder.glob("*.safetensors")))


@kept(max_entries=16)
def _live_maps(frames: Frames, numbers: tuple[int, ...]) -> dict[int, Points]:
    return {step: _live_map(frames, step) for step in numbers}


# Every new frame of an active run requests the maps of all earlier frames again.
@kept(max_entries=4_000)
def _live_map(frames: Frames, step: int) -> Points:
    return frames.store.map_points(frames.run.id, step)


@kept(max_entries=32)
def _kept_maps(frames: Frames, spec: MapSpec, files: frozenset[str]) -> dict[int, Points]:
    return read_maps(frames.source.folder(frames.folder, spec), frames.numbers)


def honesty(frames: Frames, spec: MapSpec, number: int) -> Honesty | None:
    """Return how faithful the map of a frame is, or None before this is measured."""
    return read_honesty(frames.source.folder(frames.folder, spec), number)


@kept(max_entries=2_048)
def scores(frames: Frames, number: int) -> ExampleScores:
    """Return prediction, confidence and loss of every example at a frame. Raises: StoreError."""
    return example_scores(frames.store.logits(frames.run.id, frames.step_of(number)), frames.probe.labels)


# An index of 5,000 examples in 768 dimensions takes 30 MB.
@kept(max_entries=12)
def index(frames: Frames, number: int, metric: Metric) -> NeighbourIndex:
    """Build the neighbour index of a frame's examples. Raises: StoreError."""
    return NeighbourIndex(frames.vectors(number), metric)


def measures(frames: Frames, step: int) -> FrameMeasures | None:
    """Return the measures and clusters of a frame, or None before they are computed."""
    return read_measures(measures_folder(frames.folder, frames.run.begun_attempt), step)


def clusters(frames: Frames) -> dict[int, NDArray[np.int64]]:
    """Return the clusters by frame number, for the frames that have them."""
    found = ((number, measures(frames, number)) for number in frames.numbers)
    return {number: measured.clusters for number, measured in found if measured is not None}


def config_and_evaluations(frames: Frames) -> tuple[RunConfig, list[Evaluation]]:
    """Return the run's config, including its knob turns, and its evaluations."""
    return frames.store.effective_config(frames.run.id), frames.store.evaluations(frames.run.id)


def score_notes(frames: Frames) -> tuple[str, ...]:
    """Return each frame's validation scores as a note, which names the scorer if it is not the classifier."""
    return score_notes_of(*config_and_evaluations(frames), frames.numbers)


def predictions_of(frames: Frames) -> str | None:
    """Return a sentence on whose predictions the frames hold, or None if all are the classifier's."""
    return predictions_note(*config_and_evaluations(frames))
