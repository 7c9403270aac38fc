"""A run as one small file: it plays on Home, can be shared, and opens on every page like any other run."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from core import __version__
from core.advice.score_source import scored_evaluations
from core.artifacts import replay_file
from core.artifacts.packed import write_members
from core.artifacts.replay_file import FRAMES, MAPS, RUN, TOKENS
from core.config import RunConfig
from core.config.run import without_folders
from core.errors import StoreError
from core.events import TEST, VALIDATION, Evaluation, Frame, Predictions, Probe, Started, Step
from core.messages import Message
from core.representation.metrics import within_between_ratio
from core.representation.projections import Points
from core.store import Status, Store
from core.store.attempt import Attempt
from core.store.frames import tokens_text

# Stored with the run, in English.
ABOUT = Message("A replay: it has frames, curves and tokens, but no weights to encode your own text.")
ENDED_EARLY = Message(
    "A replay of a run that ended ({status}) at step {step} of {steps}. It has no weights to continue from."
)
TAG = "replay"
# Libraries whose versions affect the numbers.
MADE_WITH = ("torch", "transformers", "numpy", "scikit-learn")
ID_CHARS = 12


@dataclass(frozen=True, slots=True)
class Replay:
    """The data to play: a step, a map [N, 2], and the scores of the validation split for each frame.

    `separations` has the ratio of the spread within classes to that between classes of its validation examples.
    """

    title: str
    config: RunConfig
    probe: Probe
    steps: tuple[int, ...]
    maps: tuple[Points, ...]
    scores: tuple[Evaluation | None, ...]
    separations: tuple[float | None, ...]


def read_replay(path: Path) -> Replay:
    """Read a replay to play it. Raises: StoreError for a file that is not a replay."""
    contents = replay_file.read(path)
    run, probe = contents.run, contents.probe
    held_out = slice(probe.held_out)
    scores = {
        one.step: Evaluation(one.step, one.split, one.values) for one in run.evaluations if one.split == VALIDATION
    }
    return Replay(
        title=run.title,
        config=contents.config,
        probe=probe,
        steps=run.frames,
        maps=tuple(contents.maps[step] for step in run.frames),
        scores=tuple(scores.get(step) for step in run.frames),
        separations=tuple(
            within_between_ratio(contents.arrays[f"embeddings.{step}"][held_out], probe.labels[held_out])
            for step in run.frames
        ),
    )


def open_replay(store: Store, path: Path, owner: str | None = None) -> str:
    """Import a replay as a run. A second import of the same file returns the same run.

    The whole file is checked before anything is written; a failed import leaves no run.

    Args:
        owner: the visitor who owns the run; None on a server that is not shared, and for the project's own replays.
    Returns: the run's id.
    Raises: StoreError for a file that is not a replay, or a run that cannot be stored.
    """
    try:
        with path.open("rb") as file:
            run_id = hashlib.file_digest(file, "sha256").hexdigest()[:ID_CHARS]
        if store.bring_back(run_id):  # the file was checked then
            return run_id
    except OSError:
        pass  # reading it raises the error
    contents = replay_file.read(path)
    run, steps = contents.run, contents.config.steps
    about = ABOUT
    if run.status != Status.FINISHED.value:
        step = max((one.step for one in run.steps), default=0)
        about = ENDED_EARLY.fill(status=Message(run.status), step=step, steps=steps)
    attempt = store.adopt(run_id, contents.config, run.title, run.seconds, owner)
    with finish_adopted_run(store, attempt, about):
        attempt.record_start(Started(0, steps, run.device, contents.probe, run.facts))
        if run.steps:
            attempt.steps([Step(one.step, one.values) for one in run.steps])
        for one in run.evaluations:
            attempt.evaluation(one.step, one.split, one.values)
        attempt.tokens(contents.tokens)
        arrays = contents.arrays
        for step in run.frames:
            vectors, logits = (arrays[f"{name}.{step}"].astype(np.float32) for name in ("embeddings", "logits"))
            attention = arrays.get(f"attention.{step}")
            frame = Frame(step, vectors, logits, None if attention is None else attention.astype(np.float16))
            attempt.frame(frame, contents.maps[step])
        if f"{TEST}.labels" in arrays:
            attempt.predictions(predictions_of(arrays[f"{TEST}.logits"], arrays[f"{TEST}.labels"]))
    return run_id


@contextmanager
def finish_adopted_run(store: Store, attempt: Attempt, about: Message) -> Iterator[None]:
    """End an adopted run after the block has written its records, or delete the run if the block fails."""
    try:
        yield
        store.tag(attempt.run_id, [TAG])
        attempt.end(Status.FINISHED, about)
    except BaseException:
        store.drop_adopted(attempt.run_id)
        raise


def predictions_of(logits: NDArray[Any], labels: NDArray[Any]) -> Predictions:
    """Return the predictions for the test split. Args: logits: [N, C]; labels: [N]."""
    return Predictions(TEST, logits.astype(np.float32), tuple(map(int, labels)))


def write_replay(store: Store, run_id: str, path: Path) -> None:
    """Write an ended run as a replay. The same run gives the same bytes.

    Raises: StoreError for a run that has not ended or has no frames, and for a path that cannot be written.
    """
    run = store.run(run_id)
    if not run.status.ended:
        status = Message(str(run.status))
        raise StoreError("{title} is {status}: wait for its end, or stop it.", title=run.title, status=status)
    # The last frames of a diverged run may hold non-finite numbers.
    reads = (store.embeddings, store.logits, store.map_points)
    frames = [s for s in store.frame_steps(run_id) if all(np.isfinite(read(run_id, s)).all() for read in reads)]
    if run.probe is None or not frames:
        raise StoreError("{title} has no frames, which a replay needs.", title=run.title)
    tokens = store.tokens(run_id)
    arrays = {}
    for frame in (store.frame(run_id, step) for step in frames):
        arrays[f"embeddings.{frame.step}"] = _halved(frame.embeddings)
        arrays[f"logits.{frame.step}"] = _halved(frame.logits)
        if frame.attention is not None and tokens.rows:
            mean = frame.attention.mean(1, keepdims=True, dtype=np.float32)
            arrays[f"attention.{frame.step}"] = _halved(mean)
    if (test := store.predictions(run_id)) is not None and np.isfinite(test.logits).all():
        arrays |= {f"{TEST}.logits": _halved(test.logits), f"{TEST}.labels": np.asarray(test.labels, np.int32)}
    maps = {str(step): store.map_points(run_id, step).astype(np.float32) for step in frames}
    about = {
        "format": replay_file.FORMAT,
        "title": run.title,
        "config": json.loads(without_folders(run.effective).to_json()),
        "made_with": made_with(),
        "status": str(run.status),
        "device": run.device or "cpu",
        "seconds": round(run.elapsed_s, 1),
        "facts": dict(run.facts),
        "probe": asdict(run.probe),
        "frames": frames,
        "steps": [_record(step) for step in store.steps(run.id)],
        "evaluations": [
            _record(e) | {"split": e.split} for e in scored_evaluations(run.effective, store.evaluations(run.id))
        ],
    }
    members = {
        RUN: json.dumps(about, ensure_ascii=False, allow_nan=False),
        MAPS: save(maps),
        FRAMES: save(arrays),
        TOKENS: tokens_text(tokens),
    }
    write_members(path, members)


def made_with() -> dict[str, str]:
    """Return the versions of the libraries that affect the numbers, by name."""
    own = {"scl-playground": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in MADE_WITH}


def _record(event: Step | Evaluation) -> dict[str, Any]:
    values = {name: float(f"{value:.6g}") for name, value in event.values.items() if isfinite(value)}
    return {"step": event.step, "values": values}


def _halved(array: NDArray[Any]) -> NDArray[Any]:
    """Convert to half precision, or to single precision if a number exceeds the half-precision range."""
    with np.errstate(over="ignore"):
        half = np.ascontiguousarray(array, np.float16)
    return half if np.isfinite(half).all() else np.ascontiguousarray(array, np.float32)
