"""How good the model is on a split, and whether its vectors have collapsed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import log_softmax
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from core.events import FloatArray


def classification_scores(logits: FloatArray, labels: Sequence[int]) -> dict[str, float]:
    """Accuracy with its 95 % Wilson interval, macro-F1 over the labels present, and mean cross-entropy in nats."""
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


def linear_probe_scores(
    train: FloatArray, train_labels: Sequence[int], held_out: FloatArray, labels: Sequence[int]
) -> dict[str, float]:
    """Scores of a logistic regression (C = 1, vectors as they are) on frozen vectors [n, H]."""
    probe = LogisticRegression(C=1.0, max_iter=2000).fit(train, np.asarray(train_labels))
    log_p = np.full((len(held_out), max(*train_labels, *labels) + 1), -np.inf)
    log_p[:, probe.classes_] = probe.predict_log_proba(held_out)
    scores = classification_scores(np.maximum(log_p, -1e3).astype(np.float32), labels)
    return scores | {"train_rows": float(len(train))}
