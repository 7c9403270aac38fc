"""Loading of a config's encoder, its precision, and encoding of texts in evaluation mode, to vectors and logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.config import EncoderConfig, Precision
from core.encoders.model import Encoder, Tokenizer, load_encoder
from core.encoders.taps import Taps

Attention = NDArray[np.float16]

ENCODE_BATCH = 64


def load_encoder_of(config: EncoderConfig, classes: Sequence[str]) -> tuple[Encoder, Tokenizer]:
    """Load the encoder of a config and its tokenizer, see `load_encoder`."""
    return load_encoder(
        config.id, classes=classes, pooling=config.pooling, max_length=config.max_length, dropout=config.dropout
    )


def encoder_autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the autocast context of the encoder's passes on a device. Weights are always float32.

    Losses, norms, similarities and the classifier leave the context: they are float32 at any precision.

    Source: Micikevicius et al. 2018 (mixed precision), arXiv:1710.03740; bfloat16 needs no loss scaling: Kalamkar et
        al. 2019, arXiv:1905.12322.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=in_bfloat16(precision, device.type))


def in_bfloat16(precision: Precision, device: str) -> bool:
    """Return whether the encoder computes in bfloat16 on this type of device.

    "auto", in runs prepared before precision was a setting, means bfloat16 on CUDA and float32 elsewhere.
    """
    return device == "cuda" if precision == "auto" else precision == "bfloat16"


class Encodings(NamedTuple):
    """Encoded texts, on the device of the encoder.

    Attributes:
        pooled: [N, H] float32.
        logits: [N, C] float32.
        attention: [L, heads, tokens] of the requested texts, concatenated in the requested order; None if none is
            requested.
    """

    pooled: Tensor
    logits: Tensor
    attention: Attention | None


class Interrupted(Exception):  # noqa: N818 - a request, not an error
    """Encoding was interrupted by a request to stop the run."""


def encode(
    encoder: Encoder,
    tokenizer: Tokenizer,
    texts: Sequence[str | tuple[str, str]],
    *,
    autocast: torch.autocast,
    interrupted: Callable[[], bool] = lambda: False,
    attended: Sequence[int] = (),
    keep: bool = True,
) -> Encodings:
    """Encode N texts in evaluation mode. The mode is restored afterwards.

    Args:
        attended: indices of the texts whose [CLS] attention is returned too.
        keep: cache the tokens of new texts.
    Raises: Interrupted between two batches, once `interrupted` returns True.
    """
    training = {module: module.training for module in encoder.modules()}
    encoder.eval()
    tokens = tokenizer(texts, keep=keep)
    order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i].ids))
    last, every = len(encoder.blocks), tuple(range(1, len(encoder.blocks) + 1))
    pooled_batches, logit_batches = [], []
    wanted, rows = frozenset(attended), dict[int, Attention]()
    try:
        with torch.inference_mode(), autocast:
            for start in range(0, len(order), ENCODE_BATCH):
                if interrupted():
                    raise Interrupted
                batch = order[start : start + ENCODE_BATCH]
                taps = Taps((last,), attention=every if wanted.intersection(batch) else ())
                found = encoder.encode([tokens[i] for i in batch], taps)
                pooled_batches.append(found.pooled[last])
                logit_batches.append(encoder.logits(found.pooled[last]))
                if found.attention:  # [B, L, heads, T]
                    stacked = torch.stack([found.attention[layer] for layer in every], 1).half().cpu().numpy()
                    for place, i in enumerate(batch):
                        if i in wanted:
                            rows[i] = np.ascontiguousarray(stacked[place, :, :, : len(tokens[i].ids)])
    finally:
        for module, mode in training.items():
            module.training = mode
    back = torch.tensor(order).argsort().to(pooled_batches[0].device)
    attention = np.concatenate([rows[i] for i in attended], axis=-1) if attended else None
    return Encodings(torch.cat(pooled_batches)[back], torch.cat(logit_batches)[back], attention)
