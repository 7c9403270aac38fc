"""A large encoder on a GPU: throughput of CE and of CE + SCL against `transformers.Trainer`, all in bfloat16.

The encoder has RoBERTa-large's shape and random weights. The texts are 128 tokens of random words, in batches of 64.
Both loops train all weights with AdamW and clip at 1. Without a GPU the script prints a message and exits. `--width`
and `--blocks` make the encoder small enough to test the script on a CPU with `--anyway 1`.

Target: none yet; the output names the device.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    PrinterCallback,
    RobertaConfig,
    RobertaModel,
    Trainer,
    TrainingArguments,
)

from benchmarks.bench_training import SKIPPED, Clock
from benchmarks.measure import in_turn, need, options, progress, report, spread
from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.objective import ObjectiveConfig
from core.events import Step
from core.tasks import TaskData
from core.training.loop import train
from core.training.untrained import VectorCache
from core.workers.machine import has_bfloat16

TOKENS, WORDS, SPECIAL = 128, 20_000, ["<s>", "<pad>", "</s>", "<unk>"]


def made_encoder(folder: Path, width: int, blocks: int) -> None:
    """RoBERTa of a given size with random weights, and a tokenizer of whole words."""
    words = [*SPECIAL, *(f"w{i}" for i in range(WORDS))]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        pad_token="<pad>",
        sep_token="</s>",
        unk_token="<unk>",
    ).save_pretrained(folder)
    shape = RobertaConfig(
        vocab_size=len(words),
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=514,
    )
    torch.manual_seed(0)
    RobertaModel(shape).save_pretrained(folder)


def made_task(path: Path, rows: int) -> None:
    rng = random.Random(0)
    lines = [" ".join(f"w{rng.randrange(WORDS)}" for _ in range(TOKENS - 2)) + f",{row % 2}" for row in range(rows)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")


def config_of(folder: Path, weight: float, steps: int, batch: int) -> tuple[RunConfig, TaskData]:
    objective = ObjectiveConfig().with_knob("lambda", weight)
    draft = {
        "task": {"id": "file", "path": str(folder / "task.csv"), "validation_size": 8},
        "encoder": {"id": str(folder / "encoder"), "max_length": TOKENS},
        "phases": [{"objective": objective.model_dump(), "batch_size": batch, "steps": SKIPPED + steps}],
        "probe": {"size": 8, "frame_steps": ()},
    }
    return prepare(parse_config(draft), gpu=torch.cuda.is_available(), bfloat16=has_bfloat16("auto"))


def our_seconds(config: RunConfig, data: TaskData, cache: VectorCache) -> float:
    """Seconds of the timed steps. Every step ends with its values on the CPU, so its work is complete."""
    start = 0.0
    for event in train(config, data, cache=cache):
        if isinstance(event, Step) and event.step == SKIPPED:
            start = time.perf_counter()
        elif isinstance(event, Step) and event.step == config.steps:
            break
    return time.perf_counter() - start


class SynchronisedClock(Clock):
    """A clock that waits for the GPU, because a launch returns before its work is complete."""

    def on_step_end(self, *given: object, **more: object) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        super().on_step_end(*given, **more)


def trainer_seconds(config: RunConfig, data: TaskData) -> float:
    """Seconds of `transformers.Trainer` with cross-entropy, in our run's precision, on texts tokenised in advance."""
    from transformers import AutoTokenizer

    folder = config.encoder.id
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(list(data.train.texts), truncation=True, max_length=TOKENS)["input_ids"]
    rows = [{"input_ids": ids, "labels": label} for ids, label in zip(tokens, data.train.labels, strict=True)]
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    clock = SynchronisedClock()
    with tempfile.TemporaryDirectory(prefix="scl-bench-") as output:
        arguments = TrainingArguments(
            output_dir=output,
            use_cpu=not torch.cuda.is_available(),
            bf16=config.precision == "bfloat16",
            per_device_train_batch_size=config.phases[0].batch_size,
            max_steps=config.steps,
            max_grad_norm=1.0,
            optim="adamw_torch_fused",
            dataloader_drop_last=True,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(
            model, arguments, data_collator=DataCollatorWithPadding(tokenizer), train_dataset=rows, callbacks=[clock]
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.ends[config.steps] - clock.ends[SKIPPED]


def main() -> None:
    given = options(__doc__, repeats=3, steps=20, batch=64, width=1024, blocks=24, anyway=0)
    need("accelerate")
    if not torch.cuda.is_available() and not given.anyway:
        print("This benchmark needs a GPU; `--anyway 1 --width 64 --blocks 2 --batch 4` tests it on a CPU.")
        return
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    with tempfile.TemporaryDirectory(prefix="scl-bench-") as name:
        folder = Path(name)
        made_encoder(folder / "encoder", given.width, given.blocks)
        made_task(folder / "task.csv", 2 * given.batch * (given.steps + SKIPPED))
        cache: VectorCache = {}
        found: dict[str, list[float]] = {"CE": [], "CE + SCL": [], "Trainer": []}
        for repetition in range(given.repeats + 1):
            rates = {}
            for side in in_turn(repetition, list(found)):
                config, data = config_of(folder, 0.9 if side == "CE + SCL" else 0.0, given.steps, given.batch)
                gc.collect()
                seconds = trainer_seconds(config, data) if side == "Trainer" else our_seconds(config, data, cache)
                rates[side] = given.steps * given.batch / seconds
            progress(repetition, rates, 1)
            if repetition:
                for side, rate in rates.items():
                    found[side].append(rate)
    for side, values in found.items():
        print(f"{device}, {config.precision}, {side}: {spread(values, 1)} texts/s")
    for side in ("CE", "CE + SCL"):
        ratios = [ours / other for ours, other in zip(found[side], found["Trainer"], strict=True)]
        report("ratio", f"throughput on {device}, {side} / trainer", ratios, "–")


if __name__ == "__main__":
    main()
