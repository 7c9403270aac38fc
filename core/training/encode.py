"""Texts to pooled vectors and logits, in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from core.encoders.model import Encoder, Tokenizer

ENCODE_BATCH = 64


class Interrupted(Exception):  # noqa: N818 - somebody's wish, not an error
    """Encoding was given up because somebody asked the run to stop."""


def encode(
    encoder: Encoder,
    tokenizer: Tokenizer,
    texts: Sequence[str | tuple[str, str]],
    *,
    autocast: torch.autocast,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Tensor, Tensor]:
    """Pooled vectors [N, H] and logits [N, C], float32, on the encoder's device; the mode is put back afterwards.

    Raises: Interrupted between two batches, once `interrupted` says so.
    """
    training = {module: module.training for module in encoder.modules()}
    encoder.eval()
    tokens = tokenizer(texts)
    order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i].ids))
    pooled_batches, logit_batches = [], []
    try:
        with torch.inference_mode(), autocast:
            for start in range(0, len(order), ENCODE_BATCH):
                if interrupted():
                    raise Interrupted
                pooled = encoder.pooled([tokens[i] for i in order[start : start + ENCODE_BATCH]])
                pooled_batches.append(pooled)
                logit_batches.append(encoder.logits(pooled))
    finally:
        for module, mode in training.items():
            module.training = mode
    back = torch.tensor(order).argsort().to(pooled_batches[0].device)
    return torch.cat(pooled_batches)[back], torch.cat(logit_batches)[back]
