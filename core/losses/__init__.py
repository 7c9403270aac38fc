"""Losses: vectors in, a scalar out; plain torch, one loss per file.

May import: catalogue, errors, parameters, registry. What forms and commands know of a loss is in catalogue; how texts
become vectors, and when a loss is asked for, belongs to training.
"""

from typing import Any

from core.registry import load

# A package that imported its modules would load torch wherever one of them is named.
HOMES = {
    "ContrastiveCoefficients": "supcon",
    "Objective": "evaluate",
    "ObjectiveValue": "evaluate",
    "RDropLoss": "rdrop",
    "contrastive_coefficients": "supcon",
    "cross_entropy_loss": "cross_entropy",
    "dscl_loss": "dscl",
    "mixup_loss": "cross_entropy",
    "rdrop_loss": "rdrop",
    "scl_objective": "scl",
    "simcse_loss": "simcse",
    "supcon_loss": "supcon",
}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load(f"{__name__}.{HOMES[name]}:{name}")
