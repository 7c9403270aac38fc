"""Losses: vectors in, a scalar out; pure torch, one loss per file.

May import: errors, lazy, parameters, registry. How texts become vectors, and when a loss is asked for, belongs to
training. Names are loaded when first used, and torch when a loss is first computed: the server reads what losses say of
themselves.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "supcon_loss": "core.losses.supcon",
    "contrastive_coefficients": "core.losses.supcon",
    "ContrastiveCoefficients": "core.losses.supcon",
    "cross_entropy_loss": "core.losses.cross_entropy",
    "mixup_loss": "core.losses.cross_entropy",
    "scl_objective": "core.losses.scl",
    "dscl_loss": "core.losses.dscl",
    "simcse_loss": "core.losses.simcse",
    "rdrop_loss": "core.losses.rdrop",
    "RDropLoss": "core.losses.rdrop",
    "Objective": "core.losses.evaluate",
    "ObjectiveValue": "core.losses.evaluate",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
