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

from benchmarks.measure import need, options, ratios, repeated, report, sentences, spread, take_turns
from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.presets import PRESETS
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
# Assumed mean length of a text: token-level presets derive k from it, a third of the tokens.
TOKENS = 30.0


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


def with_preset(config: RunConfig, name: str) -> RunConfig:
    """The same run with a preset's objective."""
    objective = build(ObjectiveConfig, PRESETS[name].objectives[0]).with_tokens(TOKENS)
    return config.model_copy(update={"phases": (config.phases[0].model_copy(update={"objective": objective}),)})


class Clock(TrainerCallback):
    """Records the time at which each step ended. On a GPU, it waits for the work that the step has launched."""

    def __init__(self) -> None:
        self.ends: dict[int, float] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.ends[state.global_step] = time.perf_counter()


def trainer_seconds(
    config: RunConfig,
    data: TaskData,
    sampling: str = "random",
    skipped: int = SKIPPED,
    frozen: int | None = None,
    *,
    bf16: bool = False,
) -> float:
    """Seconds of the same steps by `transformers.Trainer`, with cross-entropy, on texts tokenised in advance.

    Args:
        sampling: "random" or "group_by_length".
        frozen: number of lowest blocks that are frozen, with the embeddings; None trains all weights.
    """
    folder, settings = encoder_folder(config.encoder.id), config.phases[0]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(list(data.train.texts), truncation=True, max_length=config.encoder.max_length)["input_ids"]
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
    on_cpu = config.device == "cpu" or not torch.cuda.is_available()
    with tempfile.TemporaryDirectory(prefix="scl-bench-") as output:
        arguments = TrainingArguments(
            output_dir=output,
            use_cpu=on_cpu,
            bf16=bf16,
            seed=config.seed,
            per_device_train_batch_size=settings.batch_size,
            max_steps=config.steps,
            learning_rate=settings.optimiser.learning_rate,
            weight_decay=settings.optimiser.weight_decay,
            warmup_steps=round(config.steps * settings.optimiser.warmup_fraction),
            max_grad_norm=settings.optimiser.max_gradient_norm,
            optim="adamw_torch_fused",
            train_sampling_strategy=sampling,
            dataloader_drop_last=True,
            dataloader_pin_memory=not on_cpu,
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

    def texts_per_s(repetition: int) -> dict[str, float]:
        seeded = config.model_copy(update={"seed": repetition})
        sides: dict[str, Callable[[], float]] = {
            "ours": lambda: our_run(seeded, data, cache).seconds,
            "trainer": lambda: trainer_seconds(seeded, data),
            "trainer, grouped": lambda: trainer_seconds(seeded, data, "group_by_length"),
        }
        if lowered:
            sides["ours, bfloat16"] = lambda: our_run(in_bfloat16(seeded), data, cache).seconds
            sides["trainer, bf16"] = lambda: trainer_seconds(seeded, data, bf16=True)
        return {name: steps * BATCH / seconds for name, seconds in take_turns(repetition, sides).items()}

    found = repeated(given.repeats, texts_per_s, 1)
    for name, values in found.items():
        print(f"{name}: {spread(values, 1)} texts/s")
    for ours, peer, target in peers:
        report("ratio", f"training throughput, {ours} / {peer}", ratios(found, ours, peer), target)


if __name__ == "__main__":
    main()
