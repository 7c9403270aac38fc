"""Cached reads of one run's frames. A cache key holds everything that its value depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.advice.score_source import predictions_note, score_notes_of
from core.artifacts.cache import numbers
from core.artifacts.maps import (
    LIVE,
    MapSource,
    layers_source,
    read_honesty,
    read_maps,
    readable_steps,
    steps_source,
)
from core.artifacts.measures import FrameMeasures, measures_path, read_measures
from core.artifacts.sentence import EndTexts
from core.events import FloatArray, Probe
from core.messages import _, in_language, language
from core.quantities import signed
from core.representation.examples import ExampleScores, example_scores
from core.representation.geometry import geometry
from core.representation.metrics import frame_measures
from core.representation.neighbours import Honesty, Metric, NeighbourIndex
from core.representation.projections import MapSpec, Points
from core.store import RunRecord, Store
from pages.ui.reads import Given, Made, cached


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames on the page: one per step of a run, or one per layer at a single step.

    Attributes:
        folder: the run's folder.
        layers_at: the step whose layers these are; None for one frame per step.
        numbers: steps or layers of the frames, ascending.
        source: the vectors that maps of these frames are computed from.
        problem: a sentence about the first frame of a step that cannot be read; empty if all can.
        end: test texts at the last step; `probe` then lists them after its own examples.
    """

    store: Store
    run: RunRecord
    folder: Path
    probe: Probe
    layers_at: int | None
    numbers: tuple[int, ...]
    source: MapSource
    problem: str = ""
    end: EndTexts | None = None

    @property
    def key(self) -> tuple[str, str, int, int | None, int | None]:
        """The cache key of these frames."""
        end = None if self.end is None else self.end.stamp
        return str(self.store.folder), self.run.id, self.run.begun_attempt, self.layers_at, end

    @property
    def extent(self) -> str:
        """The frame numbers as one text, which a cache hashes much faster than a tuple."""
        return str(self.numbers)

    def step_of(self, number: int) -> int:
        """Return the training step of a frame."""
        return number if self.layers_at is None else self.layers_at

    def vectors(self, number: int) -> FloatArray:
        """Return the vectors [N, H] of one frame. Raises: StoreError."""
        return self.source.read(number)


def cached_by_frames(max_entries: int) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Cache a function of frames by their key.

    The key does not hold the frame numbers, which grow while a run is active. A function of all frames therefore takes
    their extent as an argument.
    """
    return cached(max_entries, Frames, MapSpec)


def frames_of(store: Store, run: RunRecord, layers_at: int | None = None) -> Frames:
    """Return the readable frames of a run, or the layers of a step. Raises: StoreError for layers not computed yet."""
    assert run.probe is not None
    folder = store.run_folder(run.id)
    if layers_at is not None:
        source = layers_source(store, run, layers_at)
        return Frames(store, run, folder, run.probe, layers_at, source.present, source)
    steps, problem = _readable(store, run, str(store.frame_steps(run.id)))
    return Frames(store, run, folder, run.probe, None, steps, steps_source(store, run, steps), problem)


@cached(64)
def _readable(store: Store, run: RunRecord, steps: str) -> tuple[tuple[int, ...], str]:
    return readable_steps(store, run)


def maps(frames: Frames, spec: MapSpec) -> dict[int, Points]:
    """Return the maps [N, D] computed so far, by frame number."""
    if spec == LIVE and frames.layers_at is None:
        return _live_maps(frames, frames.extent)
    return _kept_maps(frames, spec, str(numbers(frames.source.folder(frames.folder, spec))))


@cached_by_frames(max_entries=16)
def _live_maps(frames: Frames, extent: str) -> dict[int, Points]:
    return {step: frames.store.map_points(frames.run.id, step) for step in frames.numbers}


@cached_by_frames(max_entries=32)
def _kept_maps(frames: Frames, spec: MapSpec, there: str) -> dict[int, Points]:
    return read_maps(frames.source.folder(frames.folder, spec), frames.numbers)


def honesty(frames: Frames, spec: MapSpec, number: int) -> Honesty | None:
    """Return the honesty measures of a frame's map, or None before they are computed."""
    return read_honesty(frames.source.folder(frames.folder, spec), number)


@cached_by_frames(max_entries=2_048)
def scores(frames: Frames, number: int) -> ExampleScores:
    """Return prediction, confidence and loss of every example at a frame. Raises: StoreError."""
    logits = frames.store.logits(frames.run.id, frames.step_of(number))
    if frames.end is not None:  # as at the last frame, the only one with positions
        logits = np.concatenate([logits, frames.end.logits])
    return example_scores(logits, frames.probe.labels)


@cached_by_frames(max_entries=256)
def silhouette(frames: Frames) -> float | None:
    """Return the silhouette of the validation texts in the last frame. Raises: StoreError."""
    vectors, count = frames.vectors(frames.numbers[-1]), frames.probe.held_out
    return frame_measures(vectors[:count], frames.probe.labels[:count], ["silhouette"])["silhouette"]


# An index of 5,000 examples in 768 dimensions takes 30 MB.
@cached_by_frames(max_entries=12)
def index(frames: Frames, number: int, metric: Metric) -> NeighbourIndex:
    """Build the neighbour index of a frame's examples. Raises: StoreError."""
    return NeighbourIndex(frames.vectors(number), metric)


def measured_steps(frames: Frames) -> tuple[int, ...]:
    """Return the steps that have measures or clusters."""
    return numbers(measures_path(frames.folder, frames.run.begun_attempt, 0).parent)


def measures(frames: Frames) -> dict[int, FrameMeasures]:
    """Return the measures and clusters by step, for the steps that have them."""
    there, attempt = set(measured_steps(frames)), frames.run.begun_attempt
    found = ((step, read_measures(frames.folder, attempt, step)) for step in frames.numbers if step in there)
    return {step: known for step, known in found if known is not None}


def score_notes(frames: Frames) -> tuple[str, ...]:
    """Return each frame's validation scores as a note, which names the scorer if it is not the classifier."""
    with in_language(language()):  # looks up the language once, not for every note
        return score_notes_of(frames.run.effective, frames.store.evaluations(frames.run.id), frames.numbers)


@cached_by_frames(max_entries=64)
def separation(frames: Frames) -> str:
    """Describe how well the last frame separates the classes of the validation texts; "" without a measure."""
    step, held_out = frames.numbers[-1], frames.probe.held_out
    if held_out < 2:
        return ""
    vectors, labels = frames.vectors(step)[:held_out], frames.probe.labels[:held_out]
    found = {**geometry(vectors, labels), "silhouette": silhouette(frames)}
    # Translators: mean cosine of texts within a class, and of texts of two classes.
    names = {"within_cosine": _("within"), "between_cosine": _("between"), "silhouette": _("silhouette")}
    known = [f"{names[name]} {signed(value, 2)}" for name in names if (value := found.get(name)) is not None]
    return _("At step {step}: {measures}", step=f"{step:,}", measures=" · ".join(known)) if known else ""


def predictions_of(frames: Frames) -> str | None:
    """Return a sentence that names the source of the predictions, or None if all are the classifier's."""
    return predictions_note(frames.run.effective, frames.store.evaluations(frames.run.id))
