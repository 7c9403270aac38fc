"""Gradient descent of points under the forces on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array
from core.representation.projections.kernels import Coordinates

# If at least this fraction of the graph's weight is new, the map follows the frame at full pace.
WHOLLY_NEW = 0.25
# Up to this many points, all pairs interact. Beyond, each step draws new groups of at most this size.
MOST_AT_ONCE = 2500
GAINED, KEPT, LEAST_GAIN = np.float32(0.2), np.float32(0.8), np.float32(0.01)


def pace(change: float) -> float:
    """Return the step length from one frame's map to the next, 0 to 1, for the fraction of the graph that is new.

    At a constant step length, points would creep on forever, and clusters would drift apart with every step. This way
    the map rests if nothing changed, and moves little if little changed.
    """
    return min(1.0, change / WHOLLY_NEW)


def reach(at: float) -> float:
    """Return how far a point may move at a pace of 0 to 1, in widths of the map: 0 at 0, 1/3 at 0.5, ∞ at 1.

    The old position of a single point may be unstable, so that it leaves for another cluster however little changed. It
    then moves there in stages, over several keyframes.
    """
    return at / (1 - at) / 3 if at < 1 else math.inf


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


def meetings(points: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield the groups of points that interact in one step: all points, or newly drawn groups of at most 2,500."""
    if points <= MOST_AT_ONCE:
        yield np.arange(points)
        return
    yield from np.array_split(rng.permutation(points), -(-points // MOST_AT_ONCE))
