"""What the measures here ask of their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import shown
from core.representation.geometry import Array

Whole = NDArray[np.int64]


def checked_rows(embeddings: ArrayLike, name: str = "embeddings") -> Array:
    """Vectors [N, d] as they are, in float32 where they have it, else in float64.

    Raises: ValueError naming the argument, its value and what is expected.
    """
    rows = np.asarray(embeddings)
    if rows.ndim != 2:
        raise ValueError(f"{name} = shape {list(rows.shape)}: expected a shape [N, d]")
    rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} = {shown(rows[~np.isfinite(rows)][0])}: expected finite numbers")
    return rows


def checked_labels(labels: ArrayLike, count: int, name: str = "labels") -> Whole:
    """Whole numbers [N], one for each of `count` examples.

    Raises: ValueError naming the argument, its value and what is expected.
    """
    given: NDArray[Any] = np.asarray(labels)
    if given.shape != (count,):
        raise ValueError(f"{name} = shape {list(given.shape)}: expected one for each example, [{count}]")
    whole = given == np.rint(given) if given.dtype.kind in "biuf" else np.zeros(count, bool)
    if not whole.all():
        raise ValueError(f"{name} = {shown(given[~whole].tolist()[0])}: expected whole numbers")
    return given.astype(np.int64)
