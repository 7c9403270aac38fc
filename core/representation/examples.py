"""Prediction, confidence and loss of a classifier on each example."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from core.representation.geometry import Array, Whole


@dataclass(frozen=True, slots=True, eq=False)
class ExampleScores:
    """Scores of N examples; every array is [N].

    Attributes:
        predicted: the class with the highest logit; ties go to the first.
        confidence: the probability of the prediction.
        loss: cross-entropy in nats.
        correct: whether the prediction equals the label.
    """

    predicted: Whole
    confidence: NDArray[np.float64]
    loss: NDArray[np.float64]
    correct: NDArray[np.bool_]


def example_scores(logits: Array, labels: ArrayLike) -> ExampleScores:
    """Compute the prediction, confidence and loss of each example.

    Args:
        logits: [N, C], C ≥ 1.
        labels: [N].
    """
    truth = np.asarray(labels, np.int64)
    log_p = log_softmax(logits.astype(np.float64), axis=1)
    predicted = logits.argmax(1)
    numbers = np.arange(len(logits))
    confidence = np.exp(log_p[numbers, predicted])
    return ExampleScores(predicted, confidence, -log_p[numbers, truth], predicted == truth)


def confusion(labels: ArrayLike, predicted: ArrayLike, classes: int) -> Whole:
    """Count the examples of each class (row) predicted as each class (column), [C, C]."""
    cells = np.asarray(labels, np.int64) * classes + np.asarray(predicted, np.int64)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)
