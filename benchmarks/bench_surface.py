"""A surface: the time of its cells, trained at once, against the same cells one after the other.

The cells are temperature τ by weight λ on the bundled film reviews, with the settings of the page's card. "One after
the other" trains the same configs as full runs of an experiment, through the same engine. Both start with empty caches
and a warm process, and take turns. First movement is the time from the start to the first step of any cell. Memory is
the peak of the worker process.

Targets: 3 × 3 in at most 20 s and 5 × 5 in at most 60 s; at most 0.2 times the time of the cells one after the other;
the first movement within 3 s.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in workers

from benchmarks.measure import WarmEngine, in_turn, options, own_folders, ratios, repeated, report, run_experiment
from core.config import RunConfig
from core.config.edit import apply_settings
from core.experiments.design import axis_of
from core.experiments.lifecycle import Experiments
from core.experiments.surface import LEVELS, SIDES, surface_design
from core.store import ExperimentRun, Store
from core.workers.run_rows import TaskSource

POLL_S, MIB = 0.05, 2**20
TARGETS = {3: "≤ 20", 4: "≤ 40", 5: "≤ 60"}


class PeakMemory(threading.Thread):
    """Watches the largest resident memory of the descendants of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.over = 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.2):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    self.peak = max(self.peak, process.memory_info().rss)


def measure(folder: Path, side: int, *, at_once: bool) -> dict[str, float]:
    """Seconds from the start until the last cell has ended and until the first step, and the peak memory in MiB."""
    store = Store(folder)
    draft = RunConfig()
    data = TaskSource(store.folder)(draft.task, draft.seed)
    design = surface_design(draft, data, [axis_of(name, LEVELS[name][side], draft) for name in LEVELS])
    if not at_once:
        design = design.model_copy(update={"base": apply_settings(design.base, {"executor": "full"}), "full": None})
    experiments, memory = Experiments(WarmEngine(store)), PeakMemory()
    memory.start()
    start, first = time.perf_counter(), list[float]()

    def see(runs: Sequence[ExperimentRun]) -> None:
        if not first and any(run.last_step for run in runs):
            first.append(time.perf_counter() - start)

    _, seconds = run_experiment(experiments, design, POLL_S, see)
    memory.over.set()
    memory.join()
    store.close()
    return {"seconds": seconds, "first": first[0], "memory": memory.peak / MIB}


def main() -> None:
    given = options(__doc__, repeats=3, side=SIDES[0])

    def both(repetition: int) -> dict[str, float]:
        found = {}
        for name in in_turn(repetition, ["at once", "in sequence"]):
            with own_folders() as folder:
                taken = measure(folder, given.side, at_once=name == "at once")
            found |= {f"{name}, {key}": value for key, value in taken.items()}
        return found

    found = repeated(given.repeats, both, 1, warm_up=False)
    cells = f"{given.side} × {given.side} cells"
    report("seconds", f"{cells}, at once", found["at once, seconds"], TARGETS[given.side], 1)
    report("seconds", f"{cells}, one after the other", found["in sequence, seconds"], "–", 1)
    together = ratios(found, "at once, seconds", "in sequence, seconds")
    report("ratio", f"{cells}, at once / one after the other", together, "≤ 0.2")
    report("seconds", "until the first step of a cell", found["at once, first"], "≤ 3", 1)
    report("MiB", "peak memory of a worker, at once", found["at once, memory"], "–", 0)


if __name__ == "__main__":
    main()
