"""Defaults where a config leaves a setting open: learning rates, steps, batches, the classifier's start, τ.

Small encoders: chosen by `benchmarks/study_defaults.py`, whose tables are in benchmarks/README.md. Larger ones cannot
be measured on a laptop, so theirs are published: all weights at 2e-5 and 1e-5 (Devlin et al. 2019, arXiv:1810.04805,
appendix A.3; Liu et al. 2019, arXiv:1907.11692, table 10), LoRA at 5e-4 and 4e-4 (Hu et al. 2022, arXiv:2106.09685,
table 9), with the ratio between classifier and encoder that was measured on the small one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from core.config import OptimiserConfig, PhaseConfig, TrainableConfig
from core.models.source import EncoderShape

Size = Literal["small", "base", "large"]
LARGEST_SMALL, LARGEST_BASE = 30_000_000, 150_000_000
DEFAULT_STEPS = 120
# With more classes a classifier from random weights ends below a linear probe, and random batches hold few positives.
MANY_CLASSES = 7
FEWEST_FOR_LARGE_BATCHES = 100


class Rates(NamedTuple):
    """Peak learning rates of the encoder and of the layers behind it."""

    encoder: float
    classifier: float


RATES: Mapping[str, Mapping[Size, Rates]] = {
    "all": {"small": Rates(1e-4, 5e-4), "base": Rates(2e-5, 1e-4), "large": Rates(1e-5, 5e-5)},
    "last_blocks": {"small": Rates(4e-4, 2e-3), "base": Rates(4e-5, 2e-4), "large": Rates(2e-5, 1e-4)},
    "lora": {"small": Rates(2e-3, 4e-3), "base": Rates(5e-4, 1e-3), "large": Rates(4e-4, 8e-4)},
    "classifier": {"small": Rates(5e-3, 5e-3), "base": Rates(5e-3, 5e-3), "large": Rates(5e-3, 5e-3)},
}


def default_sampler(classes: int) -> Literal["random", "class_balanced"]:
    """The sampler for a number of classes."""
    return "class_balanced" if classes >= MANY_CLASSES else "random"


class Usual(NamedTuple):
    """Settings that the form and the command line begin with, by the number of classes.

    Attributes:
        temperature: of supervised contrast; Gunel et al.'s 0.3 is too soft to part many classes, Khosla et al.'s 0.07
            is not.
        batch_size: with 16 texts a batch holds too few of many classes.
    """

    temperature: float
    batch_size: int


def usual(classes: int, rows: int) -> Usual:
    """The settings that a run begins with, for a number of classes and of training rows."""
    if classes < MANY_CLASSES:
        return Usual(0.3, 16)
    return Usual(0.07, 32 if rows >= FEWEST_FOR_LARGE_BATCHES else 16)


def default_classifier_start(classes: int, phases: Sequence[PhaseConfig]) -> Literal["random", "probe"]:
    """The start of the classifier for a number of classes; random where a phase of contrast comes first."""
    learns = len(phases) == 1 and phases[0].objective.trains_classifier
    return "probe" if learns and classes >= MANY_CLASSES else "random"


def size_class(shape: EncoderShape) -> Size:
    """By parameters without the embeddings, which hardly count: MiniLM and small ELECTRA, BERT base, BERT large."""
    parameters = shape.blocks * shape.block_parameters
    return "small" if parameters <= LARGEST_SMALL else "base" if parameters <= LARGEST_BASE else "large"


def default_rates(trainable: TrainableConfig, shape: EncoderShape) -> Rates:
    """The rates for a way of training and an encoder's size."""
    return RATES[trainable.part][size_class(shape)]


def with_rates(optimiser: OptimiserConfig, trainable: TrainableConfig, shape: EncoderShape) -> OptimiserConfig:
    """The optimiser with both rates: those it has, and the defaults for what it leaves open."""
    default = default_rates(trainable, shape)
    given = optimiser.learning_rate, optimiser.classifier_learning_rate
    encoder, classifier = (rate if rate is not None else other for rate, other in zip(given, default, strict=True))
    return optimiser.model_copy(update={"learning_rate": encoder, "classifier_learning_rate": classifier})
