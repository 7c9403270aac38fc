"""Frozen blocks: throughput if their outputs are computed once per text and reused in later epochs.

Our loop, as in a worker, against `transformers.Trainer` with the same blocks frozen and dynamic padding: cross-entropy,
batches of 16, the bundled encoder of 6 blocks, CPU. The clock starts after the first epoch.

Targets, texts per second, ours / Trainer: at least 1.5 with the last 2 blocks trained (skipping the frozen blocks
alone gives at most 1.67), at least 10 with the classifier only.
"""

from __future__ import annotations

from functools import partial

from benchmarks.bench_training import BATCH, our_run, prepared, trainer_seconds
from benchmarks.measure import need, options, ratios, repeated, report, spread, take_turns
from core.config import TrainableConfig
from core.training.untrained import VectorCache

BLOCKS = 6
CASES = {
    "last 2 of 6 blocks": (TrainableConfig(part="last_blocks", blocks=2), "≥ 1.5"),
    "classifier only": (TrainableConfig(part="classifier"), "≥ 10"),
}


def main() -> None:
    given = options(__doc__, repeats=5, rows=320, epochs=3)
    need("accelerate")
    config, data, epoch = prepared(0.0, given.rows // BATCH)
    steps = epoch * given.epochs
    cache: VectorCache = {}
    print(f"{data.name}: {given.epochs} epochs of {epoch} steps of {BATCH} texts, the first is not timed", flush=True)

    def rates(trainable: TrainableConfig, repetition: int) -> dict[str, float]:
        phase = config.phases[0].model_copy(update={"trainable": trainable, "steps": steps})
        probe = config.probe.model_copy(update={"frame_steps": (0, steps)})
        seeded = config.model_copy(update={"phases": (phase,), "probe": probe, "seed": repetition})
        sides = {
            "ours": lambda: our_run(seeded, data, cache, skipped=epoch).seconds,
            "trainer": lambda: trainer_seconds(seeded, data, skipped=epoch, frozen=trainable.frozen(BLOCKS)),
        }
        return {name: (steps - epoch) * BATCH / seconds for name, seconds in take_turns(repetition, sides).items()}

    for name, (trainable, target) in CASES.items():
        found = repeated(given.repeats, partial(rates, trainable), 1)
        for side, values in found.items():
            print(f"{name}, {side}: {spread(values, 1)} texts/s")
        of_case = ratios(found, "ours", "trainer")
        report("ratio", f"throughput from the second epoch, {name}, ours / trainer", of_case, target)


if __name__ == "__main__":
    main()
