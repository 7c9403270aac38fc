"""Cost of the instruments: a step of our loop with all instruments against a bare step.

The instruments are the terms' gradients on a block every few steps, Step events, their rows in the store, the heartbeat
and the polling of controls. The bare loop has the same encoder, batches, loss (0.5 CE + 0.5 SCL), clipping and
optimiser, and nothing else. Equal final losses show that both do the same work.

A token-level term reads all tokens of the last block, so comparing gradients costs more there. Its steps are timed with
and without the comparison.

Target: at most 5 % more time per step, a ratio of at most 1.05, for both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from unittest import mock

import torch
from torch import nn

from benchmarks.bench_training import BATCH, SKIPPED, Timed, our_run, prepared, with_preset
from benchmarks.measure import options, ratios, repeated, report, take_turns
from core.config import RunConfig, peak_rates
from core.config.plan import learning_rate_factor
from core.encoders.model import load_encoder
from core.losses import scl_objective
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.training import step as step_module
from core.training.gradients import EVERY_STEPS
from core.training.trainable import apply_trainable
from core.training.untrained import VectorCache

WEIGHT = 0.5
TARGET = "≤ 1.05"
PACES = {"compared": EVERY_STEPS, "not compared": 10**9}


def bare_run(config: RunConfig, data: TaskData) -> Timed:
    """The same fine-tune without instruments."""
    settings = config.phases[0]
    torch.manual_seed(config.seed)
    encoder, tokenizer = load_encoder(
        config.encoder.id,
        classes=data.classes,
        pooling=config.encoder.pooling,
        max_length=config.encoder.max_length,
    )
    learning = apply_trainable(encoder, settings.trainable)
    encoder.train_only(learning)
    parameters = list(encoder.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.optimiser.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, fused=True)
    temperature = settings.objective.temperature or 0.3
    sampler = make_sampler(config.task.sampler, data.train.labels, settings.batch_size, config.seed)
    labels = torch.tensor(data.train.labels)

    start, loss = 0.0, torch.zeros(())
    for step in range(1, config.steps + 1):
        rows = sampler.rows(step)
        factor = learning_rate_factor(step, config.steps, settings.optimiser.warmup_fraction)
        for group in optimiser.param_groups:
            group["lr"] = peak_rates(settings.optimiser)[0] * factor
        pooled = encoder.pooled(tokenizer([data.train.texts[row] for row in rows]))  # [B, H]
        logits = encoder.logits(pooled)
        loss = scl_objective(logits, labels[rows], pooled, weight=WEIGHT, temperature=temperature)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, settings.optimiser.max_gradient_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step == SKIPPED:
            start = time.perf_counter()
    return Timed(time.perf_counter() - start, loss.item())


def main() -> None:
    given = options(__doc__, repeats=9, steps=96)
    config, data, steps = prepared(WEIGHT, given.steps)
    cache: VectorCache = {}
    print(f"{data.name}: {steps} timed steps of {BATCH} texts, {torch.get_num_threads()} threads", flush=True)

    def against_bare(repetition: int) -> dict[str, float]:
        seeded = config.model_copy(update={"seed": repetition})
        losses = []

        def ms(run: Callable[[], Timed]) -> float:
            found = run()
            losses.append(found.loss)
            return found.seconds / steps * 1000

        runs = {"ours": lambda: our_run(seeded, data, cache), "bare": lambda: bare_run(seeded, data)}
        found = take_turns(repetition, {name: partial(ms, run) for name, run in runs.items()})
        if not math.isclose(*losses, rel_tol=1e-4):
            raise RuntimeError(f"The loops did different work. Their last losses are {losses}.")
        return found

    def compared(repetition: int) -> dict[str, float]:
        seeded = with_preset(config, "token-scl").model_copy(update={"seed": repetition})

        def ms(pace: int) -> float:
            with mock.patch.object(step_module, "EVERY_STEPS", pace):
                return our_run(seeded, data, cache).seconds / steps * 1000

        return take_turns(repetition, {name: partial(ms, pace) for name, pace in PACES.items()})

    found = repeated(given.repeats, against_bare, 1, title="{}, ms a step")
    report("ratio", "step time, with instruments / bare", ratios(found, "ours", "bare"), TARGET)
    found = repeated(given.repeats, compared, 1, title="{}, ms a step")
    times = ratios(found, "compared", "not compared")
    report("ratio", "step time, token level, gradients compared / not", times, TARGET)


if __name__ == "__main__":
    main()
