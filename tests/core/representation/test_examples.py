"""Scores of single examples, against plain arithmetic and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss

from core.representation.examples import confusion, example_scores

RNG = np.random.default_rng(0)


def test_every_score_equals_plain_arithmetic() -> None:
    logits, labels = RNG.normal(size=(25, 4)) * 3, RNG.integers(0, 4, size=25)
    found = example_scores(logits, labels)
    for n, row in enumerate(logits.tolist()):
        shares = [math.exp(x) / sum(math.exp(y) for y in row) for x in row]
        best = row.index(max(row))
        assert found.predicted[n] == best
        assert found.confidence[n] == pytest.approx(shares[best])
        assert found.loss[n] == pytest.approx(-math.log(shares[labels[n]]))
        assert found.correct[n] == (best == labels[n])
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert found.loss.mean() == pytest.approx(log_loss(labels, probabilities))


def test_large_logits_stay_finite() -> None:
    found = example_scores(np.array([[1e4, 0.0], [0.0, 1e4]]), [1, 1])
    assert found.loss.tolist() == [1e4, 0]
    assert found.confidence.tolist() == [1, 1]


def test_equal_logits_give_the_first_class_and_no_rows_have_no_scores() -> None:
    assert example_scores(np.zeros((1, 2), np.float32), [1]).predicted.tolist() == [0]
    assert example_scores(np.empty((0, 3)), []).predicted.tolist() == []


class TestConfusion:
    def test_it_equals_scikit_learn_with_true_classes_as_rows(self) -> None:
        labels, predicted = RNG.integers(0, 4, size=60), RNG.integers(0, 4, size=60)
        assert (confusion(labels, predicted, 5) == confusion_matrix(labels, predicted, labels=range(5))).all()

    def test_no_rows_have_no_counts(self) -> None:
        assert confusion([], [], 2).tolist() == [[0, 0], [0, 0]]
