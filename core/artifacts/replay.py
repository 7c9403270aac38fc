"""A finished run as one small file: watched on Home, and opened on every page like any run.

The file is a zip of `run.json` (config, steps, scores, probe), `maps.safetensors`, `frames.safetensors` (vectors and
logits in half precision, attention as the mean over heads) and `tokens.json`. It holds no weights.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from core.atomic import atomic_write
from core.config import parse_config
from core.errors import PlaygroundError, StoreError
from core.events import Evaluation, Frame, Probe, Started, Step
from core.representation.projections import Points
from core.store import Status, Store
from core.store.frames import tokens_from_text, tokens_text
from core.training.score_source import scored

BUNDLED = Path(__file__).resolve().parents[2] / "assets" / "replays" / "film_reviews.zip"
RUN, MAPS, FRAMES, TOKENS = "run.json", "maps.safetensors", "frames.safetensors", "tokens.json"
# What an archive may unpack to: more is no replay.
BYTES_MAX = 64 * 2**20
ABOUT = "A replay: it has frames, curves and tokens, but no weights to read a text of your own with."
TAG = "replay"
KEYS = {"id", "title", "config", "device", "seconds", "facts", "probe", "frames", "steps", "evaluations"}


@dataclass(frozen=True, slots=True)
class Replay:
    """What Home plays: steps, maps [N, 2] and validation accuracies, one each per frame."""

    title: str
    probe: Probe
    steps: tuple[int, ...]
    maps: tuple[Points, ...]
    accuracies: tuple[float, ...]


def bundled_replay() -> Replay:
    """The replay that comes with the project."""
    return read_replay(BUNDLED)


def read_replay(path: Path) -> Replay:
    """Raises: StoreError for what is no replay."""
    run, maps = _about(path), _arrays(path, MAPS)
    accuracies = {e["step"]: e["values"]["accuracy"] for e in run["evaluations"] if e["split"] == "validation"}
    return Replay(
        title=run["title"],
        probe=_probe(run),
        steps=tuple(run["frames"]),
        maps=tuple(maps[str(step)].astype(np.float32) for step in run["frames"]),
        accuracies=tuple(accuracies[step] for step in run["frames"]),
    )


def open_replay(store: Store, path: Path = BUNDLED) -> str:
    """Put a replay among the runs, once; returns the run's id. Raises: StoreError for what is no replay."""
    run = _about(path)
    run_id, config = run["id"], parse_config(run["config"])
    if store.bring_back(run_id):
        return run_id
    maps, arrays = _arrays(path, MAPS), _arrays(path, FRAMES)
    try:
        tokens = tokens_from_text(_member(path, TOKENS).decode())
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from error
    probe = _probe(run)
    for step in run["frames"]:
        _check_frame(arrays, maps, step, probe)
    attempt = store.adopt(run_id, config, run["title"], run["seconds"])
    attempt.started(Started(0, config.steps, run["device"], probe, run["facts"]))
    attempt.steps([Step(one["step"], one["values"]) for one in run["steps"]])
    for one in run["evaluations"]:
        attempt.evaluation(one["step"], one["split"], one["values"])
    attempt.tokens(tokens)
    for step in run["frames"]:
        vectors, logits = (arrays[f"{name}.{step}"].astype(np.float32) for name in ("embeddings", "logits"))
        attempt.frame(Frame(step, vectors, logits, arrays.get(f"attention.{step}")), maps[str(step)])
    attempt.end(Status.FINISHED, ABOUT)
    store.tag(run_id, [TAG])
    return run_id


def write_replay(store: Store, run_id: str, path: Path) -> None:
    """Write a finished run. Raises: StoreError for one that has no scored frames or whose classifier never learned."""
    run = store.run(run_id)
    evaluations = scored(store.effective_config(run_id), store.evaluations(run_id))
    known = {e.step for e in evaluations if e.split == "validation" and e.probe_rows is None}
    frames = [step for step in store.frame_steps(run_id) if step in known]
    if run.probe is None or not frames:
        raise StoreError(f"Run {run_id} has no scored frames: a replay needs a run whose classifier has learned.")
    about = {
        "format": 1,
        "id": run.id,
        "title": run.title,
        "config": json.loads(run.effective.to_json()),
        "device": run.device or "cpu",
        "seconds": round(run.elapsed_s, 1),
        "facts": dict(run.facts),
        "probe": asdict(run.probe),
        "frames": frames,
        "steps": [_record(step) for step in store.steps(run_id)],
        "evaluations": [_record(e) | {"split": e.split} for e in evaluations],
    }
    arrays = [_frame_arrays(store, run_id, step) for step in frames]
    maps = {str(step): store.map_points(run_id, step).astype(np.float32) for step in frames}
    with atomic_write(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        file.writestr(RUN, json.dumps(about, ensure_ascii=False))
        file.writestr(MAPS, save(maps))
        file.writestr(FRAMES, save({name: array for one in arrays for name, array in one.items()}))
        file.writestr(TOKENS, tokens_text(store.tokens(run_id)))


def _record(event: Step | Evaluation) -> dict[str, Any]:
    return {"step": event.step, "values": {name: float(f"{value:.6g}") for name, value in event.values.items()}}


def _frame_arrays(store: Store, run_id: str, step: int) -> dict[str, NDArray[np.float16]]:
    frame = store.frame(run_id, step)
    arrays = {"embeddings": frame.embeddings, "logits": frame.logits}
    if frame.attention is not None:
        arrays["attention"] = frame.attention.mean(1, keepdims=True, dtype=np.float32)
    return {f"{name}.{step}": np.ascontiguousarray(array, np.float16) for name, array in arrays.items()}


def _probe(run: Mapping[str, Any]) -> Probe:
    return Probe(**{name: tuple(values) for name, values in run["probe"].items()})


def _check_frame(arrays: Mapping[str, Any], maps: Mapping[str, Any], step: int, probe: Probe) -> None:
    """Raises: StoreError where a frame is missing or of another size than the probe."""
    points, classes = len(probe.ids), len(probe.classes)
    vectors, logits, places = arrays.get(f"embeddings.{step}"), arrays.get(f"logits.{step}"), maps.get(str(step))
    if (
        vectors is None
        or logits is None
        or places is None
        or vectors.ndim != 2
        or len(vectors) != points
        or logits.shape != (points, classes)
        or places.shape != (points, 2)
    ):
        raise StoreError(f"The replay's frame of step {step} is damaged: take another file.")


def _about(path: Path) -> Any:
    """What `run.json` says."""
    try:
        found = json.loads(_member(path, RUN))
        if not (isinstance(found, dict) and found.keys() >= KEYS):
            raise ValueError("something is missing in it")
        return found
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _arrays(path: Path, name: str) -> dict[str, Any]:
    try:
        return load(_member(path, name))
    except SafetensorError as error:
        raise _damaged(path, error) from error


def _member(path: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as file:
            if sum(member.file_size for member in file.infolist()) > BYTES_MAX:
                raise StoreError(f"{path.name} unpacks to more than {BYTES_MAX // 2**20} MB: it is no replay.")
            return file.read(name)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> PlaygroundError:
    return StoreError(f"{path.name} is damaged, or no replay ({error}): take another file.")
