"""Time of a step in two processes against one process with the same batch of 32, on the cores of this machine.

(1 − λ)·CE + λ·SCL on film reviews with the bundled encoder in float32, all weights trained. Two processes share the
cores; each holds the model, encodes half of the batch and sends its gradients (90 MB) to the other. The first steps are
skipped. There is no target: on one machine without GPUs the figure only shows the cost of the exchange.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in workers

from benchmarks.measure import options, ratios, repeated, report, take_turns
from core.advice.prepare import prepare
from core.config import parse_config
from core.config.objective import ObjectiveConfig
from core.events import Step
from core.training.checkpoints import Checkpoints
from core.training.loop import train
from core.training.untrained import VectorCache
from core.workers.followers import ranks_of

BATCH, FIRST_STEPS = 32, 3


def step_s(processes: int, steps: int, cache: VectorCache) -> float:
    """Median seconds of a step."""
    draft = {
        "phases": [{"steps": steps, "batch_size": BATCH, "objective": ObjectiveConfig().model_dump()}],
        "precision": "float32",
        "processes": processes,
        "probe": {"frame_steps": []},
        "checkpoint": {"every_steps": 10_000, "snapshot_steps": []},
    }
    config, data = prepare(parse_config(draft), gpu=False)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder)
        with ranks_of(config, data, weights=weights, start=None, translations=None) as ranks:
            events = train(config, data, checkpoints=Checkpoints(weights, 10_000), cache=cache, ranks=ranks)
            found = [event.values["step_s"] for event in events if isinstance(event, Step)]
    return median(found[FIRST_STEPS:])


def main() -> None:
    given = options(__doc__, repeats=5, steps=12)
    cache: VectorCache = {}
    sides = {"one": lambda: step_s(1, given.steps, cache), "two": lambda: step_s(2, given.steps, cache)}
    found = repeated(given.repeats, lambda number: take_turns(number, sides), warm_up=False)
    report("ratio", f"a step of {BATCH} texts in two processes / in one", ratios(found, "two", "one"), "none")


if __name__ == "__main__":
    main()
