"""Agreement of two dropout passes over a text, before and after the classifier."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.encoders.model import Encoder
from core.encoders.packing import Tokens
from core.training.checkpoints import random_states, restore_random_states

# All frames use the same draws, so that a curve over frames has no noise from dropout.
SEED = 0


def view_agreement(
    encoder: Encoder, learning: Sequence[nn.Module], texts: Sequence[Tokens], autocast: torch.autocast
) -> dict[str, float]:
    """Compute the mean cosine between two passes over each text, with the dropout of a training step.

    The modes of all modules and torch's random states are restored, so that training is the same without this.

    Args:
        learning: the outermost trained modules; the others run without dropout.
        texts: N tokenised texts, at least one.
    Returns: "view_cosine" of the pooled vectors and "view_cosine_logits" of the logits, from −1 to 1. A vector of
        zeros has cosine 0.
    """
    modes = {module: module.training for module in encoder.modules()}
    states = random_states()
    encoder.eval()
    for module in learning:
        module.train()
    try:
        torch.manual_seed(SEED)
        with torch.inference_mode(), autocast:
            pooled = encoder.pooled([*texts, *texts])  # [2N, H]
            logits = encoder.logits(pooled)
    finally:
        restore_random_states(states)
        for module, mode in modes.items():
            module.training = mode
    return {"view_cosine": _mean_cosine(pooled), "view_cosine_logits": _mean_cosine(logits)}


def _mean_cosine(both: Tensor) -> float:
    """Return the mean cosine of the rows of the first half [N, d] with those of the second."""
    first, second = both.float().chunk(2)
    return float(F.cosine_similarity(first, second).mean())
