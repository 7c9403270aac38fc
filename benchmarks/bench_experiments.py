"""24 short runs as an experiment, through the local engine and through Ray, against a bare loop of the same trainings.

The runs form a grid, λ × τ with two seeds (bundled encoder, film reviews, 20 steps). The loop prepares each run, trains
it with checkpoints on disk and stores nothing else. Ray has one node, this machine. All three variants start with empty
caches and a warm process, and take turns.

Targets: at most 1.15 times the loop's time, at most 1.3 times through Ray.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in workers

from benchmarks.measure import (
    WarmEngine,
    options,
    own_folders,
    ratios,
    repeated,
    report,
    run_experiment,
    take_turns,
)
from core.config.fields import build
from core.experiments.design import Design
from core.experiments.lifecycle import Experiments
from core.store import Store
from core.store.work import LOADING
from core.training.checkpoints import Checkpoints
from core.training.loop import train
from core.training.untrained import FolderCache
from core.workers import LocalEngine
from core.workers.cluster.ray_engine import RayEngine
from core.workers.job_kinds import CLUSTER
from tests.ray_cluster import DemoCluster

POLL_S = 0.25
# Time for the node to import torch.
WARM_NODE_S = 15.0


def grid(weights: int, steps: int) -> Design:
    """λ × τ with two seeds: 4 × 3 × 2 runs by default."""
    axes = [
        {"setting": "lambda", "values": [round(0.1 + 0.8 * i / max(1, weights - 1), 3) for i in range(weights)]},
        {"setting": "temperature", "values": [0.1, 0.3, 0.7]},
    ]
    return build(Design, {"base": {"task.id": "film_reviews", "steps": steps}, "axes": axes, "seeds": 2})


def through_engine_s(folder: Path, design: Design) -> float:
    """Seconds from the start of the experiment to the end of its last run."""
    store = Store(folder)
    _, seconds = run_experiment(Experiments(WarmEngine(store)), design, POLL_S)
    store.close()
    return seconds


def through_ray_s(folder: Path, design: Design) -> float:
    """The same on a Ray cluster of one node; each run requests all cores of this machine."""
    cores = os.cpu_count() or 1
    with DemoCluster(cores) as cluster:
        os.environ.update(SCL_ENGINE=cluster.address, SCL_RAY_CPUS=str(cores))
        store = Store(folder / "runs")
        engine = RayEngine(store)
        engine.warm_up()
        while (bridge := store.warm_process(CLUSTER)) is None or bridge.doing == LOADING:
            time.sleep(POLL_S)
        time.sleep(WARM_NODE_S)
        try:
            return run_experiment(Experiments(engine), design, POLL_S)[1]
        finally:
            for name in ("SCL_ENGINE", "SCL_RAY_CPUS"):
                del os.environ[name]
            os.kill(bridge.worker.pid, signal.SIGKILL)
            store.close()


def bare_loop_s(folder: Path, design: Design) -> float:
    """The same trainings one after the other in this process."""
    cache, engine = FolderCache(folder / "cache"), LocalEngine(Store(folder))
    start = time.perf_counter()
    for seed in design.seeds:
        for cell in design.cells:
            config, data = engine.prepared(design.draft(cell, seed))
            checkpoints = Checkpoints(folder / f"{cell.number}-{seed}")
            for _ in train(config, data, checkpoints=checkpoints, cache=cache):
                pass
    return time.perf_counter() - start


def main() -> None:
    given = options(__doc__, repeats=3, steps=20, weights=4)
    design = grid(given.weights, given.steps)

    def in_own_folders(side: Callable[[Path, Design], float]) -> float:
        with own_folders() as folder:
            return side(folder, design)

    whole = {"engine": through_engine_s, "ray": through_ray_s, "loop": bare_loop_s}
    sides = {name: partial(in_own_folders, side) for name, side in whole.items()}
    found = repeated(given.repeats, lambda number: take_turns(number, sides), 1, warm_up=False)
    engine, ray = ratios(found, "engine", "loop"), ratios(found, "ray", "loop")
    report("ratio", f"{design.runs} runs through the local engine / a bare loop", engine, "≤ 1.15")
    report("ratio", f"{design.runs} runs through Ray / a bare loop", ray, "≤ 1.3")


if __name__ == "__main__":
    main()
