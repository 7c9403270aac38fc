"""Scores of a classifier, a linear probe or cosines on a split."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from core.events import SPEARMAN, FloatArray
from core.representation.metrics import spearman_similarity
from core.tasks.dataset import Split

# The log-probability that stands for a probability of 0.
LEAST_LOGIT = -1e3


def classification_scores(logits: FloatArray, labels: Sequence[int]) -> dict[str, float]:
    """Compute accuracy with 95 % Wilson interval, macro-F1 over the labels present, and mean cross-entropy in nats."""
    truth = np.asarray(labels)
    predicted = logits.argmax(1)
    right = int((predicted == truth).sum())
    interval = binomtest(right, len(truth)).proportion_ci(0.95, method="wilson")
    log_p = log_softmax(logits.astype(np.float64), axis=1)
    return {
        "accuracy": right / len(truth),
        "accuracy_low": float(interval.low),
        "accuracy_high": float(interval.high),
        "macro_f1": float(f1_score(truth, predicted, average="macro", labels=np.unique(truth), zero_division=0.0)),
        "cross_entropy": float(-log_p[np.arange(len(truth)), truth].mean()),
        "rows": float(len(truth)),
    }


def similarity_scores(vectors: FloatArray, split: Split) -> dict[str, float]:
    """Compute Spearman's ρ between the cosines of the pairs of a split and their scores.

    Args:
        vectors: [N, H], one for each row of the split.
    Returns: "spearman"; nothing for a task with classes, or if all cosines or all scores are equal.
    """
    if split.scores is None:
        return {}
    found = spearman_similarity(vectors[::2], vectors[1::2], split.scores[::2])
    return {} if found is None else {SPEARMAN: found}


class LinearProbe:
    """A logistic regression (C = 1, unscaled vectors) on frozen vectors [n, H]."""

    def __init__(self, vectors: FloatArray, labels: Sequence[int], classes: int) -> None:
        """Fit the probe. Classes without rows are never predicted."""
        self.rows, self._classes = len(vectors), classes
        self._known = np.unique(np.asarray(labels))
        # With a single class there is nothing to fit.
        several = len(self._known) > 1
        with warnings.catch_warnings():
            # scikit-learn warns of regression targets if classes have few rows.
            warnings.filterwarnings("ignore", "The number of unique classes")
            model = LogisticRegression(C=1.0, max_iter=2000)
            self._fitted = model.fit(vectors, np.asarray(labels)) if several else None

    def logits(self, vectors: FloatArray) -> FloatArray:
        """Return log-probabilities [n, C], LEAST_LOGIT for a class without rows."""
        log_p = np.full((len(vectors), self._classes), LEAST_LOGIT)
        log_p[:, self._known] = 0.0 if self._fitted is None else self._fitted.predict_log_proba(vectors)
        return np.maximum(log_p, LEAST_LOGIT).astype(np.float32)


def probe_scores(logits: FloatArray, labels: Sequence[int], rows: int) -> dict[str, float]:
    """Compute the scores of a linear probe's logits.

    They include `train_rows`, the number of rows of the fit, which only a probe's scores have.
    """
    return classification_scores(logits, labels) | {"train_rows": float(rows)}
