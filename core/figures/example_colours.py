"""What the colours of examples on a map say, where they are categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.figures.map_data import Bundle, categories_bundle
from core.figures.template import QUIET
from core.messages import _

CORRECT_COLOURS = (QUIET, "#d55e00")


def label_colours(labels: Sequence[int], classes: Sequence[str]) -> Bundle:
    return categories_bundle(labels, classes, _("Label"))


def prediction_colours(predicted: NDArray[np.integer], classes: Sequence[str]) -> Bundle:
    """Args: predicted: [F, N] class numbers."""
    return categories_bundle(predicted, classes, _("Prediction"))


def correct_colours(correct: NDArray[np.bool_]) -> Bundle:
    """Args: correct: [F, N]."""
    # Translators: the head of a legend, above "correct" and "wrong".
    label = _("Prediction is")
    return categories_bundle(~correct, (_("correct"), _("wrong")), label, CORRECT_COLOURS)
