"""A training step alone and beside one busy process: threads that sleep at barriers against threads that spin.

The app sets OMP_WAIT_POLICY=PASSIVE for every process that it starts; the peer is OpenMP's default. Each figure is the
median step of a fine-tune of the bundled encoder in a new interpreter, on real sentences. The busy process runs a
Python loop. One repetition runs all four combinations in turn.

Targets, ours / default: at most 0.5 beside the busy process, at most 1.08 alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from statistics import median

from benchmarks.measure import ROOT, options, ratios, repeated, report, sentences_file, spread, take_turns
from core.workers.processes import PATIENT

POLICIES = {"ours": PATIENT, "default": {}}
PLACES = {"alone": False, "beside": True}
BUSY = "while True: sum(range(100_000))"


def main() -> None:
    given = options(__doc__, repeats=5, steps=24, precision=("float32", "bfloat16"), measure=False)
    if given.measure:
        from benchmarks.bench_training import SKIPPED, prepared
        from core.events import Step
        from core.training.loop import train

        config, data, _ = prepared(0.5, given.steps)
        config = config.model_copy(update={"precision": given.precision})
        times = [event.values["step_s"] for event in train(config, data) if isinstance(event, Step)]
        print(median(times[SKIPPED:]))
        return
    sentences_file()  # prints the source once; the output of the new interpreters is parsed here
    sides = {
        f"{policy} {place}": partial(step_s, environment, given.steps, given.precision, busy=busy)
        for policy, environment in POLICIES.items()
        for place, busy in PLACES.items()
    }
    found = repeated(given.repeats, lambda number: take_turns(number, sides), warm_up=False)
    for name, values in found.items():
        print(f"step {name}: {spread(values)} s")
    for place, target in (("beside", "≤ 0.5"), ("alone", "≤ 1.08")):
        of_place = ratios(found, f"ours {place}", f"default {place}")
        report("ratio", f"step {place}, ours / default", of_place, target, 2)


def step_s(policy: dict[str, str], steps: int, precision: str, *, busy: bool) -> float:
    """Median seconds of a step in a new interpreter."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")} | policy
    command = [sys.executable, "-m", "benchmarks.bench_contention", "--measure"]
    command += ["--steps", str(steps), "--precision", precision]
    beside = subprocess.Popen([sys.executable, "-c", BUSY]) if busy else None
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    finally:
        if beside is not None:
            beside.kill()
            beside.wait()
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
