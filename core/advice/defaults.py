"""Defaults of settings that a config leaves open: learning rates, steps, batches, the classifier's start, τ, momentum.

Those of small encoders were chosen by `benchmarks/study_defaults.py`, whose tables are in benchmarks/README.md. Larger
encoders cannot be measured on a laptop, so their rates are published ones: all weights at 2e-5 and 1e-5 (Devlin et al.
2019, arXiv:1810.04805, appendix A.3; Liu et al. 2019, arXiv:1907.11692, table 10), LoRA at 5e-4 and 4e-4 (Hu et al.
2022, arXiv:2106.09685, table 9). The ratio of the classifier's rate to the encoder's is as measured on the small one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from core.config import OptimiserConfig, TrainableConfig
from core.models.source import EncoderShape

Size = Literal["small", "base", "large"]
LARGEST_SMALL, LARGEST_BASE = 30_000_000, 150_000_000
DEFAULT_STEPS = 120
# From this number of classes on, a classifier with random initial weights ends below a linear probe, and random batches
# hold few positives.
MANY_CLASSES = 7
FEWEST_FOR_LARGE_BATCHES = 100
# MoCo's momentum, for runs of hundreds of thousands of steps (He et al. 2020, arXiv:1911.05722).
LARGEST_MOMENTUM = 0.999
# A queue's copy of the encoder averages over about 1/(1 − m) steps, by default a tenth of the run. Its share of the
# initial encoder at the end is then (1 − 10/steps)^steps < e⁻¹⁰.
MEMORIES_IN_A_RUN = 10
MOMENTUM_DECIMALS = 3


class Rates(NamedTuple):
    """Peak learning rates of the encoder and of the layers after it."""

    encoder: float
    classifier: float


# SGD does not scale its steps by the size of the gradients, so it needs a far larger rate: at 300 times the rate of
# AdamW, with gradients clipped to 1, CE + SCL of MiniLM has about the loss of AdamW after 40 and 60 steps.
SGD_FACTOR = 300
RATES: Mapping[str, Mapping[Size, Rates]] = {
    "all": {"small": Rates(1e-4, 5e-4), "base": Rates(2e-5, 1e-4), "large": Rates(1e-5, 5e-5)},
    "last_blocks": {"small": Rates(4e-4, 2e-3), "base": Rates(4e-5, 2e-4), "large": Rates(2e-5, 1e-4)},
    "lora": {"small": Rates(2e-3, 4e-3), "base": Rates(5e-4, 1e-3), "large": Rates(4e-4, 8e-4)},
    "classifier": {"small": Rates(5e-3, 5e-3), "base": Rates(5e-3, 5e-3), "large": Rates(5e-3, 5e-3)},
}


def default_sampler(classes: int) -> Literal["random", "class_balanced"]:
    """Return the default sampler for a number of classes."""
    return "class_balanced" if classes >= MANY_CLASSES else "random"


class Usual(NamedTuple):
    """Initial settings of the form and the command line, by the number of classes.

    Attributes:
        temperature: τ of supervised contrast. Gunel et al.'s 0.3 is too soft to separate many classes; Khosla et al.'s
            0.07 is not.
        batch_size: texts per step. With many classes, 16 texts hold too few of each class.
    """

    temperature: float
    batch_size: int


def usual(classes: int, rows: int) -> Usual:
    """Return the initial settings for a number of classes and a number of training rows."""
    if classes < MANY_CLASSES:
        return Usual(0.3, 16)
    return Usual(0.07, 32 if rows >= FEWEST_FOR_LARGE_BATCHES else 16)


def size_class(shape: EncoderShape) -> Size:
    """Return the size class of an encoder: small (MiniLM, small ELECTRA), base (BERT base) or large (BERT large).

    It depends on the parameters without the embeddings, which hardly count.
    """
    parameters = shape.blocks * shape.block_parameters
    return "small" if parameters <= LARGEST_SMALL else "base" if parameters <= LARGEST_BASE else "large"


def default_rates(trainable: TrainableConfig, shape: EncoderShape, optimiser: str = "adamw") -> Rates:
    """Return the rates for the weights that learn, an encoder's size and the name of the optimiser."""
    # The rates of the last blocks are too high where these are all.
    part = "all" if trainable.frozen(shape.blocks) <= 0 and trainable.part == "last_blocks" else trainable.part
    found = RATES[part][size_class(shape)]
    return Rates(*(min(SGD_FACTOR * rate, 1.0) for rate in found)) if optimiser == "sgd" else found


def with_rates(optimiser: OptimiserConfig, trainable: TrainableConfig, shape: EncoderShape) -> OptimiserConfig:
    """Return the optimiser with both rates; a rate that is left open gets its default."""
    default = default_rates(trainable, shape, optimiser.name)
    given = optimiser.learning_rate, optimiser.classifier_learning_rate
    encoder, classifier = (rate if rate is not None else other for rate, other in zip(given, default, strict=True))
    return optimiser.model_copy(update={"learning_rate": encoder, "classifier_learning_rate": classifier})


def momentum_of(steps: int) -> float:
    """Return 1 − 10/steps, rounded down to MOMENTUM_DECIMALS decimals and clipped to [0, LARGEST_MOMENTUM]."""
    scale = 10**MOMENTUM_DECIMALS
    return min(LARGEST_MOMENTUM, max(0.0, math.floor((1 - MEMORIES_IN_A_RUN / steps) * scale) / scale))
