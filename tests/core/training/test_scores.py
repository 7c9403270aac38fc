"""Scores, against scikit-learn, scipy and an explicit Wilson formula."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss

from core.training.scores import LEAST_LOGIT, LinearProbe, classification_scores, probe_scores
from tests.cases import each
from tests.core.representation.test_recall import wilson


@each("classes", [2, 5])
def test_scores_equal_those_of_scikit_learn(classes: int) -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(60, classes)).astype(np.float32) * 3, rng.integers(0, classes, 60).tolist()
    scores = classification_scores(logits, labels)
    p = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum(1, keepdims=True)
    assert scores["accuracy"] == accuracy_score(labels, logits.argmax(1))
    assert scores["macro_f1"] == pytest.approx(f1_score(labels, logits.argmax(1), average="macro"))
    assert scores["cross_entropy"] == pytest.approx(log_loss(labels, p, labels=range(classes)))
    assert scores["rows"] == 60.0


@each(("right", "rows"), [(0, 10), (10, 10), (7, 10), (90, 120), (1, 1)])
def test_the_interval_is_wilsons(right: int, rows: int) -> None:
    logits = np.tile(np.array([[1.0, 0.0]], np.float32), (rows, 1))
    scores = classification_scores(logits, [0] * right + [1] * (rows - right))
    low, high = wilson(right, rows)
    assert (scores["accuracy_low"], scores["accuracy_high"]) == pytest.approx((low, high), abs=1e-9)
    assert scores["accuracy_low"] <= scores["accuracy"] <= scores["accuracy_high"]


def test_a_class_that_is_absent_does_not_lower_the_f1() -> None:
    logits = np.eye(3, dtype=np.float32)[[0, 1, 0, 1]]
    assert classification_scores(logits, [0, 1, 0, 1])["macro_f1"] == 1.0


def test_large_logits_do_not_overflow() -> None:
    logits = np.array([[1e4, -1e4], [1e4, -1e4]], np.float32)
    assert classification_scores(logits, [0, 1])["cross_entropy"] == pytest.approx(1e4)


class TestLinearProbe:
    def test_its_logits_are_the_log_probabilities_of_scikit_learn(self) -> None:
        rng = np.random.default_rng(3)
        train, labels, held_out = rng.normal(size=(30, 4)), rng.integers(0, 3, 30).tolist(), rng.normal(size=(9, 4))
        expected = LogisticRegression(C=1.0, max_iter=2000).fit(train, labels).predict_log_proba(held_out)
        assert LinearProbe(train, labels, 3).logits(held_out) == pytest.approx(expected, abs=1e-5)

    def test_a_class_without_rows_is_never_predicted(self) -> None:
        rng = np.random.default_rng(4)
        logits = LinearProbe(rng.normal(size=(20, 4)), [0, 2] * 10, 4).logits(rng.normal(size=(50, 4)))
        assert logits.shape == (50, 4)
        assert set(logits.argmax(1)) <= {0, 2}
        assert (logits[:, [1, 3]] == LEAST_LOGIT).all()

    def test_rows_of_one_class_alone_give_that_class(self) -> None:
        probe = LinearProbe(np.ones((3, 2), np.float32), [1, 1, 1], 2)
        logits = probe.logits(np.zeros((4, 2), np.float32))
        assert logits.argmax(1).tolist() == [1, 1, 1, 1]
        assert probe_scores(logits, [1, 1, 0, 1], probe.rows)["accuracy"] == 0.75

    def test_few_rows_per_class_raise_no_warning(self) -> None:
        vectors, labels = np.eye(30, dtype=np.float32), [row % 20 for row in range(30)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert LinearProbe(vectors, labels, 20).logits(vectors).shape == (30, 20)
