"""Normalise vectors to unit length, in a precision sufficient for their cosines."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def in_full_precision(tensor: Tensor) -> Tensor:
    """Convert to float32, but keep float64."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def unit_rows(rows: Tensor) -> Tensor:
    """Divide rows by their Euclidean length, with the graph attached.

    Args:
        rows: [M, d], float32 or float64, any scale.
    Returns: [M, d].
    Edge: a row of zeros stays zero and gets a finite gradient.
    """
    # Scaling by the largest entry first prevents under- and overflow in the norm of tiny and huge vectors.
    largest = rows.detach().abs().amax(1, keepdim=True)
    rows = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    norm = rows.square().sum(1, keepdim=True)
    return rows * torch.where(norm > 0, norm, torch.ones_like(norm)).rsqrt()


def mean_of(losses: Sequence[Tensor]) -> Tensor:
    """Return the mean of scalars; a single one is returned unchanged, to the last bit."""
    return losses[0] if len(losses) == 1 else torch.stack(list(losses)).mean()
