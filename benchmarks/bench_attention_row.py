"""Cost of the [CLS] attention row: a training step with a token tap against one without, and against eager attention.

A step is forward and backward of cross-entropy on the [CLS] vector, without an optimiser. The plain step computes the
last block for all tokens, as a step with a token tap must. The ratio therefore covers only the row and the selection
and gathering of tokens. The third variant uses transformers: eager attention in every block and
`output_attentions=True`. All three use the same packed batches.

Target: at most 5 % more time per step, a ratio of at most 1.05.
"""

from __future__ import annotations

import dataclasses
import gc
import math
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.measure import in_turn, options, ratios, repeated, report, sentences_file, spread
from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.encoders.packing import Tokens
from core.encoders.taps import Taps
from core.models.source import BUNDLED
from core.tasks.files.reading import read_file

BATCH, MAX_LENGTH, K = 16, 128, 30
TARGET = "≤ 1.05"


def loaded() -> tuple[Encoder, Tokenizer]:
    """The bundled encoder in evaluation mode, because dropout would differ between the variants."""
    torch.manual_seed(0)
    encoder, tokenizer = load_encoder(BUNDLED, classes=("no", "yes"), max_length=MAX_LENGTH)
    # Disables BERT's shortcut for the last block.
    encoder.family = dataclasses.replace(encoder.family, bert_blocks=False)
    return encoder.eval(), tokenizer


def seconds(encoder: Encoder, pooled: Callable[[list[Tokens]], Tensor], batch: list[Tokens]) -> tuple[float, float]:
    """Seconds and loss of one step."""
    start = time.perf_counter()
    loss = F.cross_entropy(encoder.logits(pooled(batch)), torch.arange(BATCH) % 2)
    loss.backward()
    encoder.zero_grad(set_to_none=True)
    return time.perf_counter() - start, loss.item()


def main() -> None:
    given = options(__doc__, repeats=9, steps=24)
    encoder, tokenizer = loaded()
    eager, _ = loaded()
    eager.model.set_attn_implementation("eager")
    eager.model.config.output_attentions = True
    last = len(encoder.blocks)
    tap = Taps(layers=(last,), tokens=((last, K),))
    tokens = tokenizer(list(read_file(sentences_file()).rows.texts[: given.steps * BATCH]))
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens) - BATCH + 1, BATCH)]
    sides: dict[str, tuple[Encoder, Callable[[list[Tokens]], Tensor]]] = {
        "plain": (encoder, encoder.pooled),
        "row": (encoder, lambda batch: encoder.encode(batch, tap).pooled[last]),
        "eager": (eager, eager.pooled),
    }
    print(f"{len(batches)} steps of {BATCH} texts, k = {K}, {torch.get_num_threads()} threads", flush=True)

    def ms_a_step(repetition: int) -> dict[str, float]:
        gc.collect()
        found = dict.fromkeys(sides, 0.0)
        for number, batch in enumerate(batches):
            # The variants take turns at every step, so that other load affects all of them alike.
            losses = []
            for name in in_turn(repetition + number, list(sides)):
                elapsed, loss = seconds(*sides[name], batch)
                found[name] += elapsed
                losses.append(loss)
            if not math.isclose(min(losses), max(losses), rel_tol=1e-4):
                raise RuntimeError(f"The variants did different work. Their losses are {losses}.")
        return {name: s / len(batches) * 1000 for name, s in found.items()}

    found = repeated(given.repeats, ms_a_step, 1, title="{}, ms a step")
    print(f"plain: {spread(found['plain'], 1)} ms a step")
    row, full = ratios(found, "row", "plain"), ratios(found, "eager", "plain")
    report("ratio", "step time, with the [CLS] row of the last block / without", row, TARGET)
    report("ratio", "step time, eager attention with output_attentions / without", full, "none")


if __name__ == "__main__":
    main()
