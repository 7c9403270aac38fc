"""What the colours of examples on a map say, where they are categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.figures.map_data import Bundle, categories_bundle
from core.figures.template import QUIET

CORRECT_COLOURS = (QUIET, "#d55e00")


def label_colours(labels: Sequence[int], classes: Sequence[str]) -> Bundle:
    return categories_bundle(labels, classes, "Label")


def prediction_colours(predicted: NDArray[np.integer], classes: Sequence[str]) -> Bundle:
    """Args: predicted: [F, N] class numbers."""
    return categories_bundle(predicted, classes, "Prediction")


def correct_colours(correct: NDArray[np.bool_]) -> Bundle:
    """Args: correct: [F, N]."""
    return categories_bundle(~correct, ("correct", "wrong"), "Prediction is", CORRECT_COLOURS)
