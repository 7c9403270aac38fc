"""Prediction, confidence and loss of a classifier on each example."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from core.representation.geometry import Array, Whole


@dataclass(frozen=True, slots=True, eq=False)
class ExampleScores:
    """Scores of N examples; every array is [N]. A label may be unknown, as for a visitor's text.

    Attributes:
        predicted: the class with the highest logit; ties go to the first.
        confidence: the probability of the prediction.
        loss: cross-entropy in nats, NaN if the label is unknown.
        known: whether the label is known.
        correct: whether the prediction equals the label; False if the label is unknown.
    """

    predicted: Whole
    confidence: NDArray[np.float64]
    loss: NDArray[np.float64]
    known: NDArray[np.bool_]
    correct: NDArray[np.bool_]


def example_scores(logits: Array, labels: ArrayLike) -> ExampleScores:
    """Compute the prediction, confidence and loss of each example.

    Args:
        logits: [N, C], C ≥ 1.
        labels: [N], −1 where unknown.
    """
    truth = np.asarray(labels, np.int64)
    log_p = log_softmax(logits.astype(np.float64), axis=1)
    predicted = logits.argmax(1)
    known, numbers = truth >= 0, np.arange(len(logits))
    of_truth = np.where(known, log_p[numbers, truth], np.nan)
    confidence = np.exp(log_p[numbers, predicted])
    return ExampleScores(predicted, confidence, -of_truth, known, predicted == truth)


def confusion(labels: ArrayLike, predicted: ArrayLike, classes: int) -> Whole:
    """Count the examples of each class (row) predicted as each class (column), [C, C], without unknown labels (−1)."""
    rows, columns = np.asarray(labels, np.int64), np.asarray(predicted, np.int64)
    known = (rows >= 0) & (columns >= 0)
    cells = rows[known] * classes + columns[known]
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)
