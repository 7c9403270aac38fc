"""Vectors and settings for the loss tests."""

from __future__ import annotations

import torch
from torch import Tensor

from core.catalogue.losses import LOSSES
from core.parameters import Value


def random_rows(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def settings(loss: str, **given: Value) -> dict[str, Value]:
    return {**LOSSES[loss].defaults, **given}
