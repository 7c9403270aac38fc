"""Noise for training splits: classes thinned out, labels flipped, words changed.

All of it is nested like few-shot samples are: a row that is among the 20 is noisy there as it is among the 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import ConfigError
from core.tasks.dataset import Input
from core.texts.eda import eda, row_generator

# Keeps the draws of one kind apart from those of another with the same seed.
LABEL_STREAM, TEXT_STREAM = 11, 12


def long_tail(labels: Sequence[int], classes: int, ratio: float, order: Sequence[int]) -> list[int]:
    """Rows that stay, ascending, when class c of C keeps b·ratio^(−c/(C−1)) of its rows, with b as large as can be.

    Args:
        ratio: rows of the first class to rows of the last, at least 1.
        order: of each class, the rows that come first in it stay.
    Raises: ConfigError when a class would be left without a row.
    Source: Cui et al. 2019, arXiv:1901.05555, section 5.
    """
    if ratio == 1.0:
        return list(range(len(labels)))
    shrink = [ratio ** (-c / max(1, classes - 1)) for c in range(classes)]
    counts = np.bincount(np.asarray(labels), minlength=classes)
    largest = min(count / share for count, share in zip(counts, shrink, strict=True))
    # Rounded down but for what floating point takes off a whole number.
    left = [int(largest * share + 1e-9) for share in shrink]
    if min(left) < 1:
        raise ConfigError(
            "imbalance", ratio, "the last class would have no rows left; give at most {most:.4g}.", most=largest
        )
    stay: list[int] = []
    for row in order:
        if left[labels[row]] > 0:
            left[labels[row]] -= 1
            stay.append(row)
    return sorted(stay)


def flipped_labels(labels: Sequence[int], classes: int, rate: float, seed: int, order: Sequence[int]) -> list[int]:
    """Labels of which the share `rate` of each class, to within one row, is another class's, drawn evenly.

    Args:
        order: the share holds, to within one row of each class, in every prefix of it.
    Source: symmetric label noise, as in Patrini et al. 2017, arXiv:1609.03683.
    """
    rng = np.random.default_rng([seed, LABEL_STREAM])
    start = rng.random(classes)
    others = rng.integers(1, classes, size=len(labels))
    noisy = list(labels)
    seen = [0] * classes
    for row in order:
        label = labels[row]
        # One flip each time that start + rate · (rows so far) passes a whole number.
        reached = [int(start[label] + rate * count) for count in (seen[label], seen[label] + 1)]
        seen[label] += 1
        if reached[1] > reached[0]:
            noisy[row] = int((label + others[row]) % classes)
    return noisy


def noisy_text(text: Input, rate: float, seed: int, row: int) -> Input:
    """A text, or both of a pair, with the share `rate` of its words changed by EDA; a function of seed and row."""
    if rate == 0.0:
        return text
    rng = row_generator(seed, 0, row, TEXT_STREAM)
    if isinstance(text, str):
        return eda(text, rate=rate, rng=rng)
    return eda(text[0], rate=rate, rng=rng), eda(text[1], rate=rate, rng=rng)
