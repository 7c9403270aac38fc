"""Gradient descent of map points along given forces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array
from core.representation.projections.kernels import Coordinates

# Up to this many points, all pairs interact. Beyond this number, each step draws new groups of at most this size.
MOST_AT_ONCE = 2500
GAINED, KEPT, LEAST_GAIN = np.float32(0.2), np.float32(0.8), np.float32(0.01)


def descend(
    start: Array,
    force: Callable[[Coordinates], Coordinates],
    rates: NDArray[np.float64],
    momentum: float,
    longest: float,
    *,
    adaptive: bool = False,
) -> Array:
    """Move points [N, D] along `force`, one step per rate, with momentum.

    Args:
        start: [N, D], D 2 or 3.
        force: coordinates [3, N] → a new array [3, N].
        longest: limit on the length of a step, in the map's own units.
        adaptive: whether every coordinate has a separate gain. It starts at 1, grows by 0.2 with each step whose force
            agrees with the velocity, shrinks by a fifth with each other step, and is never below 0.01.
    Source of the gains: Jacobs 1988, delta-bar-delta, with the constants of van der Maaten's t-SNE.
    """
    points = np.zeros((3, len(start)), np.float32)
    points[: start.shape[1]] = start.T
    velocity, gains = np.zeros_like(points), np.ones_like(points)
    for rate in rates.astype(np.float32):
        forces = force(points)
        if adaptive:
            gains = np.where(velocity * forces > 0, gains + GAINED, np.maximum(gains * KEPT, LEAST_GAIN))
            forces *= gains
        velocity = np.float32(momentum) * velocity + rate * forces
        lengths = np.sqrt((velocity * velocity).sum(0))
        velocity *= np.float32(longest) / np.maximum(lengths, np.float32(longest))
        points += velocity
    return np.ascontiguousarray(points[: start.shape[1]].T)


def interaction_groups(points: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield the groups of points that interact in one step: all points, or random groups of at most 2,500."""
    if points <= MOST_AT_ONCE:
        yield np.arange(points)
        return
    yield from np.array_split(rng.permutation(points), -(-points // MOST_AT_ONCE))
