"""Maps of several runs side by side: the same examples found in each, every map turned onto the first run's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.events import VALIDATION, Probe

Coordinates = NDArray[np.float32]
Exact = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """How a map is laid onto another: moved, turned or mirrored, and (where asked) made larger or smaller as a whole.

    One turn is found for a run, at one frame, and used for all of its frames, so that each run's frames keep holding
    still among themselves.

    Attributes:
        centre, onto: [D] what goes where: the mean place of the common examples in either map.
        rotation: [D, D] orthogonal.
        scale: 1 unless a scale was asked for.
        common: how many examples it was found from; with none the map stays as it is.
    """

    centre: Exact
    onto: Exact
    rotation: Exact
    scale: float
    common: int

    def __call__(self, points: ArrayLike) -> Coordinates:
        """Points [N, D] of any frame of the run, laid onto the other map."""
        moved = (np.asarray(points, np.float64) - self.centre) @ self.rotation * self.scale + self.onto
        return moved.astype(np.float32)


def example_keys(probe: Probe) -> list[tuple[str, str, str]]:
    """What makes an example of one run the same as one of another: its text, its class by name, and its split.

    A text that one run held out and the other learned from is not the same example.
    """
    splits = probe.splits or (VALIDATION,) * len(probe.texts)
    names = [probe.classes[label] if 0 <= label < len(probe.classes) else str(label) for label in probe.labels]
    return list(zip(probe.texts, names, splits, strict=True))


def matched(keys: Sequence[Sequence[Hashable]]) -> NDArray[np.int64]:
    """The examples that all runs have.

    Args:
        keys: one list per run; run r has N_r examples.
    Returns: [R, M], the place of each common example in each run, in the order of the first run.
    """
    places = [{example: place for place, example in enumerate(of_run)} for of_run in linked_ids(keys)]
    if not places:
        return np.zeros((0, 0), np.int64)
    common = [example for example in places[0] if all(example in of_run for of_run in places)]
    found = [[of_run[example] for example in common] for of_run in places]
    return np.array(found, np.int64).reshape(len(places), len(common))


def linked_ids(keys: Sequence[Sequence[Hashable]]) -> tuple[tuple[int, ...], ...]:
    """One id per example: 0, 1, 2, … in the order of the first run, then what others have beyond it.

    A run that comes behind the others changes none of theirs. A key that a run has twice is two examples: the first
    goes with the first of the other runs.

    Args:
        keys: one list per run.
    """
    known: dict[tuple[Hashable, int], int] = {}
    found = []
    for of_run in keys:
        seen: Counter[Hashable] = Counter()
        ids = []
        for key in of_run:
            ids.append(known.setdefault((key, seen[key]), len(known)))
            seen[key] += 1
        found.append(tuple(ids))
    return tuple(found)


def find_turn(points: ArrayLike, onto: ArrayLike, *, scaled: bool = False) -> Turn:
    """The turn that lays points as near as can be to the same examples of another map.

    Orthogonal Procrustes: it minimises the sum of squared distances over all turns, mirrorings and moves.

    Args:
        points, onto: [M, D] the common examples in both maps, in one order.
        scaled: also find one factor for the whole map. Without it distances stay what they are in the run's own map, so
            that a run whose classes lie further apart is seen to be so; with it, only the arrangement is compared.
    Raises: ValueError for maps of different shape.
    Edge: fewer than D + 1 examples leave some turns equally good, and one of them is taken; none at all, or all at
        one place, leaves the map unturned.
    Source: Schönemann 1966, the orthogonal Procrustes problem; with a scale, Schönemann & Carroll 1970.
    """
    moving, still = np.asarray(points, np.float64), np.asarray(onto, np.float64)
    if moving.ndim != 2 or moving.shape != still.shape:
        raise ValueError(f"points = shape {list(moving.shape)}: expected [M, D] like onto, {list(still.shape)}")
    count, width = moving.shape
    if not count:
        return Turn(np.zeros(width), np.zeros(width), np.eye(width), 1.0, 0)
    centre, goal = moving.mean(0), still.mean(0)
    moving, still = moving - centre, still - goal
    left, strengths, right = np.linalg.svd(moving.T @ still)  # [D, D], [D], [D, D]
    spread = float((moving**2).sum())
    scale = float(strengths.sum()) / spread if scaled and spread > 0 and strengths.sum() > 0 else 1.0
    rotation = left @ right if strengths.any() else np.eye(width)
    return Turn(centre, goal, rotation, scale, count)
