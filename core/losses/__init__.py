"""Losses in plain torch, one per file. Each maps vectors or logits to a scalar.

May import: catalogue, errors, parameters, registry. The catalogue describes losses to forms and commands. Training
turns texts into vectors and calls the losses.
"""

from typing import Any

from core.registry import load

# Imports are lazy: importing the modules here would load torch with every import of the package.
HOMES = {
    "ContrastiveCoefficients": "supcon",
    "Objective": "evaluate",
    "ObjectiveValue": "evaluate",
    "RDropLoss": "rdrop",
    "contrastive_coefficients": "supcon",
    "cosent_loss": "cosent",
    "cosine_mse_loss": "cosine_mse",
    "cross_entropy_loss": "cross_entropy",
    "cutmix_loss": "cross_entropy",
    "dcl_loss": "dcl",
    "dscl_loss": "dscl",
    "large_margin_loss": "cross_entropy",
    "mixup_loss": "cross_entropy",
    "rdrop_loss": "rdrop",
    "scl_objective": "scl",
    "simcse_loss": "simcse",
    "sincere_loss": "sincere",
    "supcon_loss": "supcon",
}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load(f"{__name__}.{HOMES[name]}:{name}")
