"""Training throughput: our loop against `transformers.Trainer` with dynamic padding.

Our loop runs as in a worker: gradient norms, every event written to a store, heartbeat and control polling. Both
fine-tune the bundled encoder with cross-entropy on the same sentences: batches of 16, CPU, fused AdamW, clipping at 1;
in float32, and in bfloat16 by autocast (`TrainingArguments(bf16=True)`) if the processor supports it. The Trainer
receives tokenised texts; our loop tokenises each text on first use.

The clock covers one pass over the rows, from the end of step 3, without model loading, first frame and final
evaluation. It covers a whole pass because grouping by length sorts the batches, so part of a pass is no fair sample.

Targets, texts per second, ours / Trainer: in float32 at least 1.2 with random batches, at least 1.0 with batches
grouped by length; ours in bfloat16 at least 2.5 against Trainer in float32, at least 1.2 against Trainer in bfloat16.
"""

from __future__ import annotations

import gc
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from benchmarks.measure import in_turn, need, options, progress, report, sentences, spread
from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.objective import ObjectiveConfig
from core.events import Step
from core.models.source import BUNDLED, encoder_folder
from core.store import Store
from core.tasks import TaskData
from core.training.loop import train
from core.training.untrained import VectorCache
from core.workers.machine import has_bfloat16
from core.workers.recorder import Recorder
from core.workers.run_controls import controlled

BATCH, LEARNING_RATE, MAX_LENGTH = 16, 5e-5, 128
# Steps before the clock starts.
SKIPPED = 3
HELD_OUT = 16


class Timed(NamedTuple):
    """Seconds of the timed steps, and the loss of the last one."""

    seconds: float
    loss: float


def prepared(weight: float, steps: int) -> tuple[RunConfig, TaskData, int]:
    """A run without frames on `steps` batches of real sentences, or on all batches if there are fewer.

    Returns: the config with SKIPPED additional steps, the data, and the number of timed steps.
    """
    task, rows = sentences()
    # A file without splits gives a fifth of its rows to the test split.
    available = rows - (rows // 5 if task["id"] == "file" else 0) - HELD_OUT
    steps = min(steps, available // BATCH)
    draft = {
        "task": task | {"train_size": steps * BATCH, "validation_size": HELD_OUT},
        "encoder": {"id": BUNDLED, "max_length": MAX_LENGTH, "pooling": "cls"},
        "phases": [
            {
                "objective": ObjectiveConfig().with_knob("lambda", weight).model_dump(),
                "optimiser": {
                    "learning_rate": LEARNING_RATE,
                    "classifier_learning_rate": LEARNING_RATE,
                    "max_gradient_norm": 1.0,
                },
                "batch_size": BATCH,
                "steps": SKIPPED + steps,
            }
        ],
        "probe": {"frame_steps": ()},
        "device": "cpu",
    }
    config, data = prepare(parse_config(draft), gpu=False)
    return config, data, steps


def our_run(config: RunConfig, data: TaskData, cache: VectorCache, skipped: int = SKIPPED) -> Timed:
    """Run our loop as a worker does, until its last step is in the store, timed from the end of step `skipped`."""
    handler = signal.getsignal(signal.SIGTERM)
    with tempfile.TemporaryDirectory(prefix="scl-bench-") as folder:
        store = Store(folder)
        run_id = store.create(config)
        claim = store.claim_next([0])
        assert claim is not None
        attempt = store.attempt(run_id, claim[1])
        attempt.register()
        recorder = Recorder(store, attempt)
        start = seconds = loss = 0.0
        with controlled(store, [attempt]) as (controls,):
            for event in train(config, data, controls=controls, cache=cache):
                recorder.record(event)
                controls.wait_while_paused()
                if isinstance(event, Step) and event.step == skipped:
                    start = time.perf_counter()
                elif isinstance(event, Step) and event.step == config.steps:
                    seconds, loss = time.perf_counter() - start, event.values["loss"]
                    break
        signal.signal(signal.SIGTERM, handler)
        store.close()
        if controls.stop_requested():
            # The controls handle SIGTERM as a request to end the run.
            sys.exit("The benchmark was stopped.")
    return Timed(seconds, loss)


class Clock(TrainerCallback):
    """Records the time at which each step ended."""

    def __init__(self) -> None:
        self.ends: dict[int, float] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.ends[state.global_step] = time.perf_counter()


def trainer_seconds(
    config: RunConfig,
    data: TaskData,
    sampling: str,
    skipped: int = SKIPPED,
    frozen: int | None = None,
    *,
    bf16: bool = False,
) -> float:
    """Seconds of the same steps by `transformers.Trainer`; `sampling` is "random" or "group_by_length".

    Args:
        frozen: number of lowest blocks that are frozen, with the embeddings; None trains all weights.
    """
    folder = encoder_folder(config.encoder.id)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(list(data.train.texts), truncation=True, max_length=MAX_LENGTH)["input_ids"]
    rows = [{"input_ids": ids, "labels": label} for ids, label in zip(tokens, data.train.labels, strict=True)]
    torch.manual_seed(config.seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=len(data.classes), dtype=torch.float32
    )
    if frozen is not None:
        base = model.base_model
        for module in (base.embeddings, *base.encoder.layer[:frozen]):
            module.requires_grad_(False)
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="scl-bench-") as output:
        arguments = TrainingArguments(
            output_dir=output,
            use_cpu=True,
            bf16=bf16,
            seed=config.seed,
            per_device_train_batch_size=BATCH,
            max_steps=config.steps,
            learning_rate=LEARNING_RATE,
            weight_decay=config.phases[0].optimiser.weight_decay,
            warmup_steps=round(config.steps * config.phases[0].optimiser.warmup_fraction),
            max_grad_norm=config.phases[0].optimiser.max_gradient_norm,
            optim="adamw_torch_fused",
            train_sampling_strategy=sampling,
            dataloader_drop_last=True,
            dataloader_pin_memory=False,
            eval_strategy="no",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(
            model,
            arguments,
            data_collator=DataCollatorWithPadding(tokenizer),
            train_dataset=rows,
            processing_class=tokenizer,
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.ends[config.steps] - clock.ends[skipped]


def in_bfloat16(config: RunConfig) -> RunConfig:
    return config.model_copy(update={"precision": "bfloat16"})


def main() -> None:
    given = options(__doc__, repeats=7, steps=96)
    need("accelerate")
    config, data, steps = prepared(0.0, given.steps)
    cache: VectorCache = {}
    print(f"{data.name}: {steps} timed steps of {BATCH} texts, {torch.get_num_threads()} threads", flush=True)
    peers = (("ours", "trainer", "≥ 1.2"), ("ours", "trainer, grouped", "≥ 1.0"))
    lowered = has_bfloat16("cpu")
    if lowered:
        peers += (("ours, bfloat16", "trainer", "≥ 2.5"), ("ours, bfloat16", "trainer, bf16", "≥ 1.2"))
    texts_per_s: dict[str, list[float]] = {name: [] for one, other, _ in peers for name in (one, other)}
    for repetition in range(given.repeats + 1):
        seeded = config.model_copy(update={"seed": repetition})
        measured: dict[str, Callable[[RunConfig], float]] = {
            "ours": lambda c: our_run(c, data, cache).seconds,
            "trainer": lambda c: trainer_seconds(c, data, "random"),
            "trainer, grouped": lambda c: trainer_seconds(c, data, "group_by_length"),
        }
        if lowered:
            measured["ours, bfloat16"] = lambda c: our_run(in_bfloat16(c), data, cache).seconds
            measured["trainer, bf16"] = lambda c: trainer_seconds(c, data, "random", bf16=True)
        found = {}
        for name in in_turn(repetition, list(measured)):
            gc.collect()
            found[name] = steps * BATCH / measured[name](seeded)
        progress(repetition, found, 1)
        if repetition:
            for name, value in found.items():
                texts_per_s[name].append(value)
    for name, values in texts_per_s.items():
        print(f"{name}: {spread(values, 1)} texts/s")
    for ours, peer, target in peers:
        ratios = [one / other for one, other in zip(texts_per_s[ours], texts_per_s[peer], strict=True)]
        report("ratio", f"training throughput, {ours} / {peer}", ratios, target)


if __name__ == "__main__":
    main()
