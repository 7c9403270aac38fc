"""The random numbers of views that are drawn row by row."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.random import Generator

# Keeps the numbers drawn here apart from those of the project's other generators, which are seeded with fewer words.
STREAM = 6


def row_generator(seed: int, step: int, row: int, draw: int) -> Generator:
    """The random numbers of one view, so that a resumed run makes the views that an unbroken one makes.

    Args:
        seed: the run's. step: of training. row: in the training split. draw: number of the view in its step.
            All >= 0.
    """
    return np.random.default_rng([seed, step, row, draw, STREAM])


def stream(*names: str) -> int:
    """A number of their own for the draws of a view or an operation, so that they do not all choose the same words."""
    return zlib.crc32(":".join(names).encode())
