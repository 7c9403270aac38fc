"""The examples of a frame as a table for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from core.events import FloatArray, Probe


def example_records(probe: Probe, logits: FloatArray, rows: Sequence[int] | None = None) -> list[dict[str, str]]:
    """Return one record (column name → text) per example of a frame.

    Args:
        logits: [N, C].
        rows: the examples to include, in this order; None for all.
    """
    shares: NDArray[np.float64] = softmax(logits.astype(np.float64), axis=1)
    predicted = logits.argmax(1)
    splits = probe.splits or ("validation",) * len(probe.ids)
    return [
        {
            "id": str(probe.ids[row]),
            "split": splits[row],
            "text": probe.texts[row],
            "label": probe.classes[probe.labels[row]],
            "prediction": probe.classes[predicted[row]],
            "confidence": f"{shares[row].max():.6f}",
        }
        for row in (range(len(probe.ids)) if rows is None else rows)
    ]
