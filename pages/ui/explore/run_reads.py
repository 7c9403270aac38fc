"""Cached reads of one run's frames. A key names everything that a value depends on."""

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
    """The frames that are looked at: those of a run's steps, or the layers of one of its steps.

    Attributes:
        layers_at: the step whose layers they are, None for the steps of the run.
        numbers: of the frames, ascending.
        source: what a map of them is made from.
    """

    store: Store
    run: RunRecord
    probe: Probe
    layers_at: int | None
    numbers: tuple[int, ...]
    source: MapSource

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """What identifies these frames."""
        return str(self.store.folder), self.run.id, self.run.begun_attempt, self.layers_at

    @property
    def folder(self) -> Path:
        return self.store.run_folder(self.run.id)

    def step_of(self, number: int) -> int:
        """The training step that a frame belongs to."""
        return number if self.layers_at is None else self.layers_at

    def vectors(self, number: int) -> FloatArray:
        """[N, H] of one frame. Raises: StoreError."""
        return self.source.read(number)


def kept(max_entries: int) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Cache what a function makes of frames: they are the same as long as their key is.

    A running run's newest frames are no part of the key: what depends on all frames takes their numbers, too.
    """
    return cached(max_entries, Frames, MapSpec)


def frames_of(store: Store, run: RunRecord, layers_at: int | None) -> Frames:
    """Raises: StoreError for layers that are not computed."""
    assert run.probe is not None
    if layers_at is not None:
        source = layers_source(store, run, layers_at)
    else:
        source = steps_source(store, run, readable(store, run)[0])
    return Frames(store, run, run.probe, layers_at, source.present, source)


def readable(store: Store, run: RunRecord) -> tuple[tuple[int, ...], str]:
    """The steps whose frames can be read, and a sentence about the first that cannot."""
    return _readable(store, run, tuple(store.frame_steps(run.id)))


@cached(64)
def _readable(store: Store, run: RunRecord, steps: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return readable_steps(store, run)


def maps(frames: Frames, spec: MapSpec) -> dict[int, Points]:
    """The maps [N, D] that are there, by the number of their frame."""
    if spec == LIVE and frames.layers_at is None:
        return _live_maps(frames, frames.numbers)
    folder = frames.source.folder(frames.folder, spec)
    return _kept_maps(frames, spec, frozenset(path.name for path in folder.glob("*.safetensors")))


@kept(max_entries=16)
def _live_maps(frames: Frames, numbers: tuple[int, ...]) -> dict[int, Points]:
    return {step: _live_map(frames, step) for step in numbers}


# Frame after frame of a run that is watched asks for those before it too.
@kept(max_entries=4_000)
def _live_map(frames: Frames, step: int) -> Points:
    return frames.store.map_points(frames.run.id, step)


@kept(max_entries=32)
def _kept_maps(frames: Frames, spec: MapSpec, files: frozenset[str]) -> dict[int, Points]:
    return read_maps(frames.source.folder(frames.folder, spec), frames.numbers)


def honesty(frames: Frames, spec: MapSpec, number: int) -> Honesty | None:
    """How far a map can be believed, None before that is known."""
    return read_honesty(frames.source.folder(frames.folder, spec), number)


@kept(max_entries=2_048)
def scores(frames: Frames, number: int) -> ExampleScores:
    """Prediction, confidence and loss of every example at a frame. Raises: StoreError."""
    return example_scores(frames.store.logits(frames.run.id, frames.step_of(number)), frames.probe.labels)


# Of 5,000 examples with 768 numbers, one takes 30 MB.
@kept(max_entries=12)
def index(frames: Frames, number: int, metric: Metric) -> NeighbourIndex:
    """What finds neighbours among a frame's examples. Raises: StoreError."""
    return NeighbourIndex(frames.vectors(number), metric)


def measures(frames: Frames, step: int) -> FrameMeasures | None:
    """Measures and clusters of a frame, None before they are computed."""
    return read_measures(measures_folder(frames.folder, frames.run.begun_attempt), step)


def clusters(frames: Frames) -> dict[int, NDArray[np.int64]]:
    """Clusters of the frames that have them."""
    found = ((number, measures(frames, number)) for number in frames.numbers)
    return {number: measured.clusters for number, measured in found if measured is not None}


def config_and_evaluations(frames: Frames) -> tuple[RunConfig, list[Evaluation]]:
    """The config of a run with the knob turns that were made, and its evaluations."""
    return frames.store.effective_config(frames.run.id), frames.store.evaluations(frames.run.id)


def score_notes(frames: Frames) -> tuple[str, ...]:
    """What each frame of a run scored on validation, and what was scored where it is not the classifier."""
    return score_notes_of(*config_and_evaluations(frames), frames.numbers)


def predictions_of(frames: Frames) -> str | None:
    """Whose predictions the frames hold, where they are not the classifier's from the start."""
    return predictions_note(*config_and_evaluations(frames))
