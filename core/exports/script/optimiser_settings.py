"""The optimiser of a phase as a script states it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OptimiserSettings:
    """AdamW or Adafactor, with peak learning rates of the encoder and of the layers behind it.

    Attributes:
        layer_decay: multiplies the rate once for each block below the last.
        bias_correction: of Adam's moments.
    """

    learning_rate: float
    classifier_learning_rate: float
    name: str = "adamw"
    layer_decay: float = 1.0
    bias_correction: bool = True
    weight_decay: float = 0.01
