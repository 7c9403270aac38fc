"""Texts to pooled vectors and logits, in evaluation mode; the precision in which the encoder computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.config import Precision
from core.encoders.model import Encoder, Tokenizer
from core.encoders.taps import Taps

Attention = NDArray[np.float16]

ENCODE_BATCH = 64


def encoder_autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context for the encoder's passes on a device; weights stay float32 either way.

    Losses, norms, similarities and the classifier leave it: they are float32 under any precision.

    Source: Micikevicius et al. 2018 (mixed precision), arXiv:1710.03740; bfloat16 needs no loss scaling: Kalamkar et
    al. 2019, arXiv:1905.12322.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=in_bfloat16(precision, device.type))


def in_bfloat16(precision: Precision, device: str) -> bool:
    """Return whether the encoder computes in bfloat16 on a type of device.

    "auto" belongs to runs that were prepared before the precision was a setting: bfloat16 on CUDA, float32 elsewhere.
    """
    return device == "cuda" if precision == "auto" else precision == "bfloat16"


class Encodings(NamedTuple):
    """Texts after the encoder, on its device.

    Attributes:
        pooled: [N, H] float32.
        logits: [N, C] float32.
        attention: [L, heads, tokens], the asked-for texts one behind the other in the order asked; None for none.
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
    """Encode N texts in evaluation mode; the mode is restored afterwards.

    Args:
        attended: texts whose attention of [CLS] is wanted too.
        keep: whether the tokens of new texts are kept for the next time.
    Raises: Interrupted between two batches, once `interrupted` says so.
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
                rows |= _rows(found.attention, batch, [len(tokens[i].ids) for i in batch], wanted)
    finally:
        for module, mode in training.items():
            module.training = mode
    back = torch.tensor(order).argsort().to(pooled_batches[0].device)
    attention = np.concatenate([rows[i] for i in attended], axis=-1) if attended else None
    return Encodings(torch.cat(pooled_batches)[back], torch.cat(logit_batches)[back], attention)


def _rows(
    layers: Mapping[int, Tensor], batch: Sequence[int], lengths: Sequence[int], wanted: Collection[int]
) -> dict[int, Attention]:
    """The rows [L, heads, T] of the wanted texts of a batch, each as long as its text."""
    if not layers:
        return {}
    stacked = torch.stack([layers[layer] for layer in sorted(layers)], 1).half().cpu().numpy()  # [B, L, heads, T]
    return {
        number: np.ascontiguousarray(stacked[place, :, :, :length])
        for place, (number, length) in enumerate(zip(batch, lengths, strict=True))
        if number in wanted
    }
