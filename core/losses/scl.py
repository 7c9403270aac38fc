"""The fine-tuning objective of Gunel et al.: cross-entropy and a supervised contrastive term."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor

from core.losses.cross_entropy import cross_entropy_loss
from core.losses.supcon import supcon_loss


def scl_objective(
    logits: Tensor,
    labels: Tensor,
    features: Tensor,
    *,
    weight: float,
    temperature: float = 0.3,
    combine: Literal["convex", "additive"] = "convex",
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """Compute (1 − λ)·CE + λ·SCL, or CE + λ·SCL.

    Args:
        logits: [N, C].
        labels: [N].
        features: [N, d] or [N, V, d], the vectors to contrast.
        weight: λ, in [0, 1] if convex, ≥ 0 if additive; 0 is exactly cross-entropy.
        temperature: > 0, unitless.
        combine: "convex" or "additive".
        reduction: of SCL over the anchors that have a positive; CE is always a mean over the texts.
    Returns: scalar, nats.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: Gunel et al. 2021, eq. 1–3, arXiv:2011.01403; the paper's SCL is the sum over anchors.
    """
    if combine not in ("convex", "additive"):
        raise ValueError(f"combine = {combine!r}: expected one of convex, additive")
    upper = 1.0 if combine == "convex" else math.inf
    if not (0.0 <= weight <= upper and math.isfinite(weight)):
        raise ValueError(f"weight = {weight}: expected a number from 0{' to 1' if combine == 'convex' else ''}")
    ce = cross_entropy_loss(logits, labels)
    if weight == 0:
        return ce
    scl = supcon_loss(features, labels, temperature=temperature, reduction=reduction)
    return (1.0 - weight if combine == "convex" else 1.0) * ce + weight * scl
