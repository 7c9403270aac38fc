"""The confusion matrix as a table whose cells can be pressed; names of classes wrap, however long they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.figures.template import class_colour

SCRIPT = Path(__file__).with_name("confusion.js")
STYLE = Path(__file__).with_name("confusion.css")
# More names than this, or longer ones, have no room side by side.
LEVEL_CLASSES, LEVEL_CHARS = 4, 16

_mount = st.components.v2.component(
    "confusion",
    html='<div class="confusion" role="region" aria-label="Confusion matrix" tabindex="-1"></div>',
    css=STYLE.read_text(encoding="utf-8"),
    js=SCRIPT.read_text(encoding="utf-8"),
    isolate_styles=False,
)


def confusion_table(names: Sequence[str], counts: NDArray[np.integer], *, key: str) -> tuple[int, int] | None:
    """Draw it; the cell that was just pressed.

    Args:
        names: C classes, from outside.
        counts: [C, C], labels × predictions.
    Returns: label and prediction, None when no cell was pressed.
    """
    result = _mount(
        key=key,
        data={
            "names": [" ".join(name.split()) for name in names],
            "colours": [class_colour(label) for label in range(len(names))],
            "counts": counts.tolist(),
            "upright": len(names) > LEVEL_CLASSES or max(map(len, names), default=0) > LEVEL_CHARS,
        },
        on_cell_change=lambda: None,
        height="content",
    )
    return checked_cell(result.cell, len(names))


def checked_cell(value: Any, classes: int) -> tuple[int, int] | None:
    """A cell as the browser reports it, None for none and for nonsense: a browser can send anything."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    label, prediction = value
    known = range(classes)
    fits = type(label) is int and type(prediction) is int and label in known and prediction in known
    return (label, prediction) if fits else None
