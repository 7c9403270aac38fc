"""The confusion matrix, whose cells can be pressed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.figures.template import class_colour
from core.messages import _, ngettext
from pages.ui.cell_table import Head, TableCell, cell_table


def confusion_table(names: Sequence[str], counts: NDArray[np.integer], *, key: str) -> tuple[int, int] | None:
    """Draw it; the cell that was just pressed.

    Args:
        names: C classes, from outside.
        counts: [C, C], labels × predictions.
    Returns: label and prediction, None when no cell was pressed.
    """
    heads = [Head(name, class_colour(label)) for label, name in enumerate(names)]
    cells = [[_cell(names, counts, row, column) for column in range(len(names))] for row in range(len(names))]
    # Translators: rows of a table are labels, its columns predictions
    corner = _("label ↓  prediction →")
    return cell_table(heads, heads, cells, label=_("Confusion matrix"), corner=corner, key=key)


def _cell(names: Sequence[str], counts: NDArray[np.integer], label: int, prediction: int) -> TableCell | None:
    count = int(counts[label, prediction])
    if not count:
        return None
    about = _(
        "Label {label}, predicted {prediction}: {examples}",
        label=names[label],
        prediction=names[prediction],
        examples=ngettext("{count} example", "{count} examples", count),
    )
    share = count / int(counts[label].sum())
    return TableCell(str(count), about, share, kind="right" if label == prediction else "wrong")
