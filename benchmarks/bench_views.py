"""Cost of additional views: time of a step with R-Drop, one-stage and two-stage, against plain cross-entropy.

All three run our loop as a worker does, on the same batches of 16 sentences with the bundled encoder, CPU.

Targets: one-stage at most 1.15 × a step of cross-entropy, two-stage at most 2.1 ×.
"""

from __future__ import annotations

from functools import partial

from benchmarks.bench_training import our_run, prepared, with_preset
from benchmarks.measure import options, ratios, repeated, report, take_turns
from core.training.untrained import VectorCache

TARGETS = {"rdrop-one-stage": "≤ 1.15", "rdrop-two-stage": "≤ 2.1"}


def main() -> None:
    given = options(__doc__, repeats=5, steps=48)
    config, data, steps = prepared(0.0, given.steps)
    cache: VectorCache = {}

    def step_s(seed: int, name: str) -> float:
        seeded = config.model_copy(update={"seed": seed})
        return our_run(with_preset(seeded, name), data, cache).seconds / steps

    found = repeated(
        given.repeats,
        lambda number: take_turns(number, {name: partial(step_s, number, name) for name in ("ce", *TARGETS)}),
    )
    for name, target in TARGETS.items():
        report("ratio", f"step time, {name} / cross-entropy", ratios(found, name, "ce"), target)


if __name__ == "__main__":
    main()
