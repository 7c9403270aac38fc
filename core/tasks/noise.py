"""Noise for training splits: class imbalance, flipped labels and changed words.

All noise is nested like few-shot samples: a row in a sample of 20 has the same noise in a sample of 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import ConfigError
from core.tasks.dataset import Input
from core.texts.eda import eda, row_generator

# Random streams, so that two kinds of noise with the same seed are independent.
LABEL_STREAM, TEXT_STREAM = 11, 12


def long_tail(labels: Sequence[int], classes: int, ratio: float, order: Sequence[int]) -> list[int]:
    """Return the rows to keep, ascending: class c of C keeps b·ratio^(−c/(C−1)) rows, with b as large as possible.

    Args:
        ratio: rows of the first class divided by rows of the last, above 1.
        order: each class keeps its first rows in this order.
    Raises: ConfigError if a class would keep no row.
    Source: Cui et al. 2019, arXiv:1901.05555, section 5.
    """
    shrink = [ratio ** (-c / max(1, classes - 1)) for c in range(classes)]
    counts = np.bincount(np.asarray(labels), minlength=classes)
    largest = min(count / share for count, share in zip(counts, shrink, strict=True))
    # Round down, but keep a whole number that floating point has made slightly smaller.
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
    """Flip the fraction `rate` of each class's labels, to within one row, to another class drawn uniformly.

    Args:
        order: row order in which every prefix has this fraction, to within one row of each class.
    Source: symmetric label noise, as in Patrini et al. 2017, arXiv:1609.03683.
    """
    rng = np.random.default_rng([seed, LABEL_STREAM])
    start = rng.random(classes)
    others = rng.integers(1, classes, size=len(labels))
    noisy = list(labels)
    seen = [0] * classes
    for row in order:
        label = labels[row]
        # Flip each time that start + rate · (rows so far) passes a whole number.
        reached = [int(start[label] + rate * count) for count in (seen[label], seen[label] + 1)]
        seen[label] += 1
        if reached[1] > reached[0]:
            noisy[row] = int((label + others[row]) % classes)
    return noisy


def noisy_text(text: Input, rate: float, seed: int, row: int) -> Input:
    """Change the fraction `rate` of the words of a text, or of both texts of a pair, by EDA; seeded by row."""
    if rate == 0.0:
        return text
    rng = row_generator(seed, 0, row, TEXT_STREAM)
    if isinstance(text, str):
        return eda(text, rate=rate, rng=rng)
    return eda(text[0], rate=rate, rng=rng), eda(text[1], rate=rate, rng=rng)
