"""Whether vectors have collapsed: a loss at its collapse line can also mean equidistant vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

# How near to its collapse line a loss counts as being at it, and what then tells collapse from equal distances.
NEAR_LINE = 0.02
COLLAPSED_COSINE = 0.99
SPREAD_RANK = 8.0


def normalised(embeddings: Array) -> NDArray[np.float64]:
    """Rows at length 1; a zero row stays zero."""
    rows = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def mean_pairwise_cosine(embeddings: Array) -> float:
    """Mean cosine over unordered pairs of rows [N, d], N ≥ 2; 1 when all point one way."""
    z = normalised(embeddings)
    n = len(z)
    total = z.sum(0)
    return float((total @ total - (z * z).sum()) / (n * (n - 1)))


def effective_rank(embeddings: Array) -> float:
    """exp(entropy of the singular values' shares) of the centred, normalised rows.

    Returns: from 1 (a line) to min(N − 1, d); 1.0 when there is no spread at all.
    Source: Roy & Vetterli 2007.
    """
    z = normalised(embeddings)
    values = np.linalg.svd(z - z.mean(0), compute_uv=False)
    if values.sum() <= len(z) * np.finfo(np.float64).eps:
        return 1.0
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def collapse_verdict(loss: float, collapse_line: float, cosine: float, rank: float) -> str | None:
    """Whether a contrastive loss at its collapse line means collapse; a sentence, None when it is away from the line.

    Args:
        loss, collapse_line: nats, of one step.
        cosine: mean pairwise cosine of the probe.
        rank: effective rank of the probe.
    """
    if loss < collapse_line * (1 - NEAR_LINE):
        return None
    if cosine > COLLAPSED_COSINE:
        return "The vectors have collapsed: they all point one way. Raise the temperature or lower the learning rate."
    if loss > collapse_line * (1 + NEAR_LINE):
        return None  # above the line: wrong neighbours are nearer than right ones, which is no collapse
    if rank > SPREAD_RANK:
        return (
            "The contrastive loss stands at its collapse line, but the vectors are spread out: "
            "they are alike to the loss because they are about equally far apart, so nothing has collapsed."
        )
    return "The contrastive loss stands at its collapse line and the vectors fill few directions: watch the map."
