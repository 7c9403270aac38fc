"""Losses: vectors in, a scalar out; pure torch, one loss per file.

May import: errors, lazy, parameters, registry. How texts become vectors, and when a loss is asked for, belongs to
training. torch is loaded when a loss is first computed: the server reads what losses say of themselves.
"""

from core.losses.cross_entropy import cross_entropy_loss, mixup_loss
from core.losses.dscl import dscl_loss
from core.losses.evaluate import Objective, ObjectiveValue
from core.losses.rdrop import RDropLoss, rdrop_loss
from core.losses.scl import scl_objective
from core.losses.simcse import simcse_loss
from core.losses.supcon import ContrastiveCoefficients, contrastive_coefficients, supcon_loss

__all__ = [
    "ContrastiveCoefficients",
    "Objective",
    "ObjectiveValue",
    "RDropLoss",
    "contrastive_coefficients",
    "cross_entropy_loss",
    "dscl_loss",
    "mixup_loss",
    "rdrop_loss",
    "scl_objective",
    "simcse_loss",
    "supcon_loss",
]
