"""A finished run as one small file: its maps and scores, to be watched where nothing was trained yet."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from core.errors import StoreError
from core.events import Probe
from core.learning import scored
from core.representation.projections import Points
from core.store import Store

BUNDLED = Path(__file__).resolve().parents[1] / "assets" / "replays" / "film_reviews.json"


@dataclass(frozen=True, slots=True)
class Replay:
    """The frames of a run: steps, maps [N, 2] and validation accuracies, one each per frame."""

    title: str
    probe: Probe
    steps: tuple[int, ...]
    maps: tuple[Points, ...]
    accuracies: tuple[float, ...]


def bundled_replay() -> Replay:
    """The replay that comes with the project."""
    return read_replay(BUNDLED)


def read_replay(path: Path) -> Replay:
    given = json.loads(path.read_text(encoding="utf-8"))
    return Replay(
        title=given["title"],
        probe=Probe(**{name: tuple(values) for name, values in given["probe"].items()}),
        steps=tuple(given["steps"]),
        maps=tuple(np.asarray(points, np.float32) for points in given["maps"]),
        accuracies=tuple(given["accuracies"]),
    )


def write_replay(store: Store, run_id: str, path: Path) -> None:
    """Write a run's maps and scores. Raises: StoreError when it has none."""
    run = store.run(run_id)
    evaluations = scored(store.effective_config(run_id), store.evaluations(run_id))
    scores = {e.step: e.values["accuracy"] for e in evaluations if e.split == "validation" and e.probe_rows is None}
    steps = [step for step in store.frame_steps(run_id) if step in scores]
    if run.probe is None or not steps:
        raise StoreError(f"Run {run_id} has no scored frames: a replay needs a run whose classifier has learned.")
    given = {
        "title": run.title,
        "probe": asdict(run.probe),
        "steps": steps,
        "maps": [store.map_points(run_id, step).round(4).tolist() for step in steps],
        "accuracies": [scores[step] for step in steps],
    }
    path.write_text(json.dumps(given, ensure_ascii=False), encoding="utf-8")
