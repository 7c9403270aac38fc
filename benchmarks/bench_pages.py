"""Rerun time of Runs, Fine-tune (a run's view) and Explore, with 50 runs in the store.

One run has 5,000 steps and 200 frames of 1,000 points, and is the one that Fine-tune and Explore show; 49 are small. A
rerun goes through Streamlit's AppTest: the script, its messages, and AppTest's own reading of them. The first run of a
page, which fills the caches, does not count; the pages take turns.

Target: a median of at most 200 ms each.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import psutil
from streamlit.testing.v1 import AppTest

from benchmarks.measure import ROOT, end_processes, in_turn, options, own_folders, progress, report
from core.config import RunConfig, parse_config
from core.events import Frame, Probe, Started, Step
from core.store import Status, Store
from core.tasks import TaskData, load_task

SMALL_RUNS, SMALL_STEPS, SMALL_FRAMES, SMALL_POINTS = 49, 60, 8, 60
FRAMES, POINTS, WIDTH = 200, 1_000, 384
PAGES = {"Runs": "pages/runs.py", "Fine-tune": "pages/fine_tune.py", "Explore": "pages/explore.py"}
# What must be on a page, so that no empty one is measured.
SHOWN = {"Runs": "dataframe", "Fine-tune": "bidi_component", "Explore": "bidi_component"}
TIMEOUT_S = 120.0


def make_run(store: Store, name: str, steps: int, frames: int, points: int) -> str:
    """A finished run of invented numbers, written as a worker writes."""
    rng = np.random.default_rng(steps)
    frame_steps = sorted({int(step) for step in np.linspace(0, steps, frames)})
    draft = {"name": name, "phases": [{"steps": steps}], "probe": {"size": points, "frame_steps": frame_steps}}
    config = parse_config(draft)
    run_id = store.create(config)
    claim = store.claim_next([0])
    assert claim is not None
    attempt = store.attempt(run_id, claim[1])
    attempt.started(_started(config, load_task(config.task, config.seed), points))
    attempt.steps([Step(step, _measures(rng)) for step in range(1, steps + 1)])
    embeddings = rng.normal(size=(points, WIDTH)).astype(np.float32)
    logits = rng.normal(size=(points, 2)).astype(np.float32)
    places = rng.normal(size=(points, 2))
    for step in frame_steps:
        places = places + rng.normal(scale=0.02, size=places.shape)
        attempt.frame(Frame(step, embeddings, logits), places.astype(np.float32))
        attempt.evaluation(step, "validation", _scores(0.8))
    attempt.evaluation(0, "baseline", _scores(0.7))
    attempt.evaluation(steps, "test", _scores(0.8))
    attempt.end(Status.FINISHED)
    return run_id


def _started(config: RunConfig, data: TaskData, points: int) -> Started:
    rows = [i % len(data.train) for i in range(points)]
    split = data.train.take(rows)
    probe = Probe(tuple(range(points)), split.texts, split.labels, data.classes)
    return Started(0, config.steps, "cpu", probe, {"majority_rate": 0.5, "steps_per_epoch": 17})


def _measures(rng: np.random.Generator) -> dict[str, float]:
    """One step's numbers, under the names that the loop gives them."""
    names = (
        *("loss", "grad_norm", "loss.cross_entropy", "loss.supcon", "pooled_grad.cross_entropy", "pooled_grad.supcon"),
        *(
            "pooled_cosine",
            "learning_rate",
            "lambda",
            "temperature",
            "collapse_line",
            "lower_bound",
            "step_s",
            "tokens",
        ),
    )
    return dict(zip(names, rng.uniform(0.1, 1.0, len(names)).tolist(), strict=True))


def _scores(accuracy: float) -> dict[str, float]:
    bounds = {"accuracy": accuracy, "accuracy_low": accuracy - 0.02, "accuracy_high": accuracy + 0.02}
    return bounds | {"macro_f1": accuracy, "cross_entropy": 0.5, "mean_cosine": 0.3, "effective_rank": 20.0}


def open_page(name: str, run_id: str) -> AppTest:
    """The page after its first run, which fills the caches."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT_S)
    app.run()
    app.switch_page(PAGES[name])
    if name != "Runs":
        app.query_params["run"] = run_id
    rerun_ms(app, name)
    if not app.get(SHOWN[name]):
        raise RuntimeError(f"{name} shows no {SHOWN[name]}.")
    return app


def rerun_ms(app: AppTest, name: str) -> float:
    start = time.perf_counter()
    app.run()
    elapsed = (time.perf_counter() - start) * 1000
    problems = [*app.exception, *app.error, *app.warning]
    if problems:
        raise RuntimeError(f"{name} shows a problem: {problems[0]}")
    return elapsed


def measure(folder: Path, repeats: int, steps: int) -> dict[str, list[float]]:
    store = Store(folder)
    big = make_run(store, "big", steps, min(FRAMES, steps), POINTS)
    for number in range(SMALL_RUNS):
        make_run(store, f"small {number}", SMALL_STEPS, SMALL_FRAMES, SMALL_POINTS)
    print(f"{len(store.runs())} runs, one of {steps:,} steps and {len(store.frame_steps(big))} frames", flush=True)
    store.close()
    apps = {name: open_page(name, big) for name in PAGES}
    # The launcher that the app has started would still be importing beside the first reruns.
    end_processes(psutil.Process().children(recursive=True))
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    for repetition in range(1, repeats + 1):
        found = {name: rerun_ms(apps[name], name) for name in in_turn(repetition, list(PAGES))}
        progress(repetition, found, 0)
        for name, value in found.items():
            times[name].append(value)
    return times


def main() -> None:
    given = options(__doc__, repeats=21, steps=5_000)
    with own_folders() as folder:
        times = measure(folder, given.repeats, given.steps)
    for name, values in times.items():
        report("milliseconds", f"rerun of {name}", values, "median ≤ 200", 0)


if __name__ == "__main__":
    main()
