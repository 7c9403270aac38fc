"""Cached reads of one run's frames. A key names everything that a value depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.artifacts.maps import (
    LIVE,
    KeptHonesty,
    MapSource,
    layers_source,
    map_path,
    read_honesty,
    read_maps,
    readable_steps,
    steps_source,
)
from core.artifacts.measures import FrameMeasures, measures_folder, read_measures
from core.config import RunConfig
from core.events import VALIDATION, Evaluation, FloatArray, Probe
from core.quantities import percent
from core.representation.examples import ExampleScores, example_scores
from core.representation.neighbours import NeighbourIndex
from core.representation.projections import MapSpec, Points
from core.store import RunRecord, Store
from core.training.score_source import predictions_note, scored


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
        """What tells them from any other frames."""
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
    return _readable(str(store.folder), run.id, run.begun_attempt, tuple(store.frame_steps(run.id)), store, run)


@st.cache_resource(show_spinner=False, max_entries=64)
def _readable(
    store_folder: str, run_id: str, attempt: int, steps: tuple[int, ...], _store: Store, _run: RunRecord
) -> tuple[tuple[int, ...], str]:
    return readable_steps(_store, _run)


def maps(frames: Frames, spec: MapSpec) -> dict[int, Points]:
    """The maps [N, D] that are there, by the number of their frame."""
    folder = frames.source.folder(frames.folder, spec)
    if spec == LIVE and frames.layers_at is None:
        return _live_maps(*frames.key, frames.numbers, frames.store)
    there = frozenset(path.name for path in folder.glob("*.safetensors")) if folder.exists() else frozenset[str]()
    return _kept_maps(*frames.key, spec.key, there, folder, frames.numbers)


@st.cache_resource(show_spinner=False, max_entries=16)
def _live_maps(
    store_folder: str, run_id: str, attempt: int, layers_at: int | None, numbers: tuple[int, ...], _store: Store
) -> dict[int, Points]:
    return {step: _live_map(store_folder, run_id, attempt, step, _store) for step in numbers}


# Frame after frame of a run that is watched asks for those before it too.
@st.cache_resource(show_spinner=False, max_entries=4_000)
def _live_map(store_folder: str, run_id: str, attempt: int, step: int, _store: Store) -> Points:
    return _store.map_points(run_id, step)


@st.cache_resource(show_spinner=False, max_entries=32)
def _kept_maps(
    store_folder: str,
    run_id: str,
    attempt: int,
    layers_at: int | None,
    spec_key: str,
    there: frozenset[str],
    _folder: Path,
    _numbers: tuple[int, ...],
) -> dict[int, Points]:
    return read_maps(_folder, _numbers)


def honesty(frames: Frames, spec: MapSpec, number: int) -> KeptHonesty | None:
    """How far a map can be believed, None before that is known."""
    folder = frames.source.folder(frames.folder, spec)
    try:
        stamp = map_path(folder, number).stat().st_mtime_ns
    except OSError:
        return None
    return _honesty(*frames.key, spec.key, number, stamp, folder)


@st.cache_resource(show_spinner=False, max_entries=512)
def _honesty(
    store_folder: str,
    run_id: str,
    attempt: int,
    layers_at: int | None,
    spec_key: str,
    number: int,
    stamp: int,
    _folder: Path,
) -> KeptHonesty | None:
    return read_honesty(_folder, number)


def scores(frames: Frames, number: int) -> ExampleScores:
    """Prediction, confidence and loss of every example at a frame. Raises: StoreError."""
    return _scores(*frames.key, frames.step_of(number), frames.store, frames.probe)


@st.cache_resource(show_spinner=False, max_entries=2_048)
def _scores(
    store_folder: str, run_id: str, attempt: int, layers_at: int | None, step: int, _store: Store, _probe: Probe
) -> ExampleScores:
    return example_scores(_store.logits(run_id, step), _probe.labels)


def index(frames: Frames, number: int, metric: str) -> NeighbourIndex:
    """What finds neighbours among a frame's examples. Raises: StoreError."""
    return _index(*frames.key, number, metric, frames)


# Of 5,000 examples with 768 numbers, one takes 30 MB.
@st.cache_resource(show_spinner=False, max_entries=12)
def _index(
    store_folder: str, run_id: str, attempt: int, layers_at: int | None, number: int, metric: str, _frames: Frames
) -> NeighbourIndex:
    return NeighbourIndex(_frames.vectors(number), metric)  # type: ignore[arg-type]


def measures(frames: Frames, step: int) -> FrameMeasures | None:
    """Measures and clusters of a frame, None before they are computed."""
    folder = measures_folder(frames.folder, frames.run.begun_attempt)
    return read_measures(folder, step)


def clusters(frames: Frames) -> dict[int, NDArray[np.int64]]:
    """Clusters of the frames that have them."""
    folder = measures_folder(frames.folder, frames.run.begun_attempt)
    there = frozenset(path.name for path in folder.glob("*.safetensors")) if folder.exists() else frozenset[str]()
    return _clusters(*frames.key, there, folder, frames.numbers)


@st.cache_resource(show_spinner=False, max_entries=16)
def _clusters(
    store_folder: str,
    run_id: str,
    attempt: int,
    layers_at: int | None,
    there: frozenset[str],
    _folder: Path,
    _numbers: Sequence[int],
) -> dict[int, NDArray[np.int64]]:
    found = ((number, read_measures(_folder, number)) for number in _numbers)
    return {number: measured.clusters for number, measured in found if measured is not None}


def config_and_evaluations(frames: Frames) -> tuple[RunConfig, list[Evaluation]]:
    """The config of a run with the knob turns that were made, and its evaluations."""
    return frames.store.effective_config(frames.run.id), frames.store.evaluations(frames.run.id)


def score_notes(frames: Frames) -> tuple[str, ...]:
    """What each frame of a run scored on validation, and what was scored where it is not the classifier."""
    notes = {
        e.step: f"{'validation' if e.probe_rows is None else 'linear probe'} {percent(e.values['accuracy'])}"
        for e in scored(*config_and_evaluations(frames))
        if e.split == VALIDATION
    }
    return tuple(notes.get(step, "") for step in frames.numbers)


def predictions_of(frames: Frames) -> str | None:
    """Whose predictions the frames hold, where they are not the classifier's from the start."""
    return predictions_note(*config_and_evaluations(frames))
