"""Recall of single classes and of groups of classes by their number of training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.messages import N_

# Groups of classes by their number of training rows.
GROUPS: Mapping[str, str] = {
    "head": N_("Head classes"),
    "middle": N_("Middle classes"),
    "tail": N_("Tail classes"),
}
# Ratio of the largest to the smallest class from which a training set counts as imbalanced.
IMBALANCED = 2.0


class Recall(NamedTuple):
    """The fraction of rows that were predicted as their own class, with a 95 % Wilson interval; NaN without rows."""

    rows: int
    share: float
    low: float
    high: float


def recall(labels: ArrayLike, predicted: ArrayLike, classes: Sequence[int]) -> Recall:
    """Compute the recall of the rows with these labels, each row counted once.

    Args:
        labels, predicted: [N].
        classes: one class, or those of a group.
    Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    from scipy.stats import binomtest

    truth = np.asarray(labels)
    chosen = np.isin(truth, list(classes))
    rows = int(chosen.sum())
    if not rows:
        return Recall(0, np.nan, np.nan, np.nan)
    right = int((np.asarray(predicted)[chosen] == truth[chosen]).sum())
    interval = binomtest(right, rows).proportion_ci(0.95, method="wilson")
    return Recall(rows, right / rows, float(interval.low), float(interval.high))


def class_groups(train_counts: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the classes of each group: the third with the most training rows, the third with the fewest, the rest.

    A third is rounded to the nearest number of at least one class. Equal counts are ordered by class number.

    Args:
        train_counts: training rows of each class.
    Returns: by names of GROUPS, without empty groups; empty for fewer than two classes.
    """
    classes = sorted(range(len(train_counts)), key=lambda c: (-train_counts[c], c))
    if len(classes) < 2:
        return {}
    third = (len(classes) + 1) // 3
    groups = {"head": classes[:third], "middle": classes[third:-third], "tail": classes[-third:]}
    return {name: tuple(group) for name, group in groups.items() if group}


def is_imbalanced(train_counts: Sequence[int]) -> bool:
    """Return whether the largest class has at least twice the training rows of the smallest."""
    return len(train_counts) > 1 and max(train_counts) >= IMBALANCED * min(train_counts)
