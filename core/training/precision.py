"""Precision of the encoder: bfloat16 by autocast, or float32."""

from __future__ import annotations

import torch

from core.config import Precision


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
