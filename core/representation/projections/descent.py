"""How points follow the forces on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from core.representation.geometry import Array
from core.representation.projections.kernels import Coordinates

# A frame in which this much of the graph's weight is new is a frame that a map has to follow at full pace.
WHOLLY_NEW = 0.25
# All pairs up to this many points; beyond, a point meets this many others in each step, other ones every time.
MOST_AT_ONCE = 2500
GAINED, KEPT, LEAST_GAIN = np.float32(0.2), np.float32(0.8), np.float32(0.01)


def pace(change: float) -> float:
    """How long the steps from one frame's map to the next are, 0 to 1, from how much of the graph is new.

    Points would creep on for ever, clusters a little farther apart with every step. Where nothing changed the map has
    nothing to follow, so it rests; where little changed it moves little.
    """
    return min(1.0, change / WHOLLY_NEW)


def reach(at: float) -> float:
    """How far a point may go at a pace of 0 to 1, in widths of the map: nowhere at 0, a third at 0.5, anywhere at 1.

    A single point may find its old place unstable and leave for another cluster however little changed; it then goes
    there by stages, over several keyframes.
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
    """Points [N, D] after one step per rate along `force`, with momentum.

    Args:
        start: [N, D], D 2 or 3.
        force: coordinates [3, N] → a new array [3, N].
        longest: no point goes farther in one step, in the map's own units.
        adaptive: whether every coordinate has a gain of its own: 1 at first, 0.2 more with each step whose force goes
            the way the point already goes, a fifth less with each other step, and never below 0.01.
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
    """Who meets whom in one step: everybody, or groups of at most 2,500 that are drawn for every step."""
    if points <= MOST_AT_ONCE:
        yield np.arange(points)
        return
    yield from np.array_split(rng.permutation(points), -(-points // MOST_AT_ONCE))
