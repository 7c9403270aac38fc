"""The maps of a run's frames, computed as frames arrive, and positions of new vectors on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from core.representation.geometry import Array, normalised
from core.representation.neighbours import nearest_among
from core.representation.projections.alignment import Points
from core.representation.projections.copies import find_copies
from core.representation.projections.entry import PROJECTIONS, MapSpec, PreviousMap
from core.representation.projections.graph import memberships

MOST_KEYFRAMES = 24
FRAMES_IN_MEMORY = 3  # two keyframes and one between
NEIGHBOURS = 10
# Coordinates are in single precision. Axes along which points spread less than this fraction of the widest would carry
# only rounding errors.
NARROWEST = 1e-4

Read = Callable[[int], Array]
Done = Callable[[int], Points | None]


class Placed(NamedTuple):
    """The map of one frame: points [N, D]."""

    step: int
    points: Points


def keyframes(planned: Sequence[int], present: Sequence[int], *, ended: bool) -> tuple[int, ...]:
    """Return the keyframes among the present steps, ascending.

    Keyframes are at most 24 of the planned steps, evenly spaced and including the first and the last. They are fixed
    before a run starts, so that later frames do not change earlier maps. The first present step is always fitted, and
    the last one if no more frames will come.
    """
    steps, there = sorted(set(planned)), sorted(set(present))
    if not there:
        return ()
    chosen = np.linspace(0, len(steps) - 1, min(MOST_KEYFRAMES, len(steps))).round().astype(int)
    fitted = {steps[place] for place in chosen} & set(there) | {there[0]}
    return tuple(sorted(fitted | {there[-1]} if ended else fitted))


def map_frames(
    spec: MapSpec, planned: Sequence[int], present: Sequence[int], read: Read, done: Done, *, ended: bool
) -> Iterator[Placed]:
    """Yield the missing maps in the order in which they can be computed: a keyframe, then the frames before it.

    On one machine, the same spec and frames give the same coordinates to the last digit, whatever was computed before.
    Frames after the last keyframe wait for the next one. Mode "once" waits for the run's end, since its reference is
    the last frame.

    Args:
        planned: the steps of all planned frames.
        present: the steps of the frames that exist.
        read: step → embeddings [N, H].
        done: step → the points from an earlier call, or None.
        ended: whether no more frames will come.
    """
    steps = sorted(set(present))
    if not steps or (spec.mode == "once" and not ended):
        return
    read = lru_cache(FRAMES_IN_MEMORY)(read)
    if spec.mode == "once":
        points = done(steps[-1])
        if points is None:
            points = _fit(spec, read(steps[-1]), None)
            yield Placed(steps[-1], points)
        place = spec.entry.onto
        assert place is not None  # MapSpec rejects a mode that its method lacks
        for step in [s for s in steps[:-1] if done(s) is None]:
            with _one_thread():
                placed = place(read(step), PreviousMap(read(steps[-1]), points), spec.settings)
            yield Placed(step, placed)
        return
    before: tuple[int, Points] | None = None
    for step in steps if spec.entry.quick else keyframes(planned, steps, ended=ended):
        points = done(step)
        if points is None:
            frame = None if before is None else PreviousMap(read(before[0]), before[1])
            points = _fit(spec, read(step), frame)
            yield Placed(step, points)
        if before is not None:
            for other in [s for s in steps if before[0] < s < step and done(s) is None]:
                ends = (before[1], points), (read(before[0]), read(step))
                yield Placed(other, interpolate_points(*ends, read(other)))
        before = step, points


def interpolate_points(points: tuple[Points, Points], vectors: tuple[Array, Array], here: Array) -> Points:
    """Place each point at d_a / (d_a + d_b) of the way from its position in keyframe a to that in b.

    Equal vectors share one position, the mean of theirs.

    Args:
        points: [N, D] of a and b.
        vectors: [N, H] of a and b.
        here: [N, H] of the frame; d_a and d_b are its distances from the vectors of a and b. 0 / 0 counts as 0.
    """
    unit = normalised(here)
    d_a, d_b = (np.linalg.norm(unit - normalised(end), axis=1) for end in vectors)
    total = d_a + d_b
    part = np.divide(d_a, total, out=np.zeros_like(total), where=total > 0)[:, None]
    copies = find_copies(unit)
    return copies.mean(points[0] + part * (points[1] - points[0]))[copies.of].astype(np.float32)


def place_new(points: Points, embeddings: Array, vectors: Array, *, linear: bool) -> Points:
    """Place new vectors on the map of one frame.

    On a linear map (principal components, rotated or not), a vector is projected on the map's axes. The points P and
    the centred, normalised examples Z give the axes as W = Zᵀ P (PᵀP)⁺. This is exact for a frame that was itself
    fitted, since there P = Z W, WᵀW = 1 and W spans principal axes. On other maps, a vector lies at the weighted mean
    of the positions of its ten nearest examples. The weights are those with which UMAP starts new points:
    exp(−(d − ρ)/σ), which sum to log2(k + 1) before they are normalised.
    A vector that equals an example lies where the example lies.

    Args:
        points: [N, D].
        embeddings: [N, H] of the same frame.
        vectors: [M, H].
        linear: whether the map is linear in the normalised vectors (`Projection.linear`).
    Returns: [M, D].
    """
    rows, new = normalised(embeddings), normalised(vectors)
    if linear:
        middle = points.mean(0, dtype=np.float64)
        spread = points - middle
        # PᵀP squares the spreads, and so the limit. The points sum to 0, so Zᵀ P needs no centred examples.
        axes = rows.T @ spread @ np.linalg.pinv(spread.T @ spread, rcond=NARROWEST**2, hermitian=True)
        return ((new - rows.mean(0)) @ axes + middle).astype(np.float32)
    found, distances = nearest_among(new, rows, min(NEIGHBOURS, len(rows)))
    copies = distances == 0
    weights = np.where(copies.any(1, keepdims=True), copies, memberships(distances))  # [M, k]
    weights = weights / weights.sum(1, keepdims=True)
    return (weights[:, :, None] * points[found]).sum(1).astype(np.float32)


def _fit(spec: MapSpec, embeddings: Array, before: PreviousMap | None) -> Points:
    with _one_thread():
        return spec.entry.fit(embeddings, spec.dims, spec.settings, spec.seed, before)


def _one_thread() -> AbstractContextManager[object]:
    """Limit libraries to one thread: the number of threads changes the order of sums, and so the last digit."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(limits=1)


# Not in `entry`, which every projection imports.
PROJECTIONS.collect("core.representation.projections")
