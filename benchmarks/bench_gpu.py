"""A large encoder on a GPU: throughput of CE and of CE + SCL against `transformers.Trainer`, all in bfloat16.

The encoder has RoBERTa-large's shape and random weights. The texts are 128 tokens of random words, in batches of 64.
Both loops train all weights with AdamW and clip at 1. Without a GPU the script prints a message and exits. `--width`
and `--blocks` make the encoder small enough to test the script on a CPU with `--anyway 1`.

Target: none yet; the output names the device.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from benchmarks.bench_training import SKIPPED, our_run, trainer_seconds
from benchmarks.measure import need, options, ratios, repeated, report, spread, take_turns
from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.objective import ObjectiveConfig
from core.tasks import TaskData
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
        config, data = config_of(folder, 0.0, given.steps, given.batch)
        contrastive, _ = config_of(folder, 0.9, given.steps, given.batch)
        sides = {
            "CE": lambda: our_run(config, data, cache).seconds,
            "CE + SCL": lambda: our_run(contrastive, data, cache).seconds,
            "Trainer": lambda: trainer_seconds(config, data, bf16=config.precision == "bfloat16"),
        }

        def texts_per_s(repetition: int) -> dict[str, float]:
            return {name: given.steps * given.batch / s for name, s in take_turns(repetition, sides).items()}

        found = repeated(given.repeats, texts_per_s, 1)
    for side, values in found.items():
        print(f"{device}, {config.precision}, {side}: {spread(values, 1)} texts/s")
    for side in ("CE", "CE + SCL"):
        report("ratio", f"throughput on {device}, {side} / trainer", ratios(found, side, "Trainer"), "–")


if __name__ == "__main__":
    main()
