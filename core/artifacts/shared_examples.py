"""Match the examples of several runs, and align their maps with the first run's map."""

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
    """A transform that aligns one map with another: translation, and rotation or reflection.

    A run has one turn, fitted at one frame and applied to all of its frames, so its maps stay stable. Distances within
    a map do not change, so classes that are further apart also look further apart.

    Attributes:
        centre, onto: [D] mean position of the common examples on this map, and on the other.
        rotation: [D, D] orthogonal.
        common: number of examples it was fitted to; with 0, the map stays unchanged.
    """

    centre: Exact
    onto: Exact
    rotation: Exact
    common: int

    def __call__(self, points: ArrayLike) -> Coordinates:
        """Apply the turn to points [N, D] of any frame of the run."""
        moved = (np.asarray(points, np.float64) - self.centre) @ self.rotation + self.onto
        return moved.astype(np.float32)


def example_keys(probe: Probe) -> list[tuple[str, str, str]]:
    """Return one key per example: its text, its class name and its split. Equal keys mean the same example.

    A text that one run held out and another trained on counts as two examples.
    """
    splits = probe.splits or (VALIDATION,) * len(probe.texts)
    names = [probe.classes[label] if 0 <= label < len(probe.classes) else str(label) for label in probe.labels]
    return list(zip(probe.texts, names, splits, strict=True))


def find_shared_rows(keys: Sequence[Sequence[Hashable]]) -> NDArray[np.int64]:
    """Find the rows of the examples that all runs share.

    Args:
        keys: one list per run; run r has N_r examples.
    Returns: [R, M], the row of each common example in each run, in the order of the first run.
    """
    places = [{example: place for place, example in enumerate(of_run)} for of_run in linked_ids(keys)]
    if not places:
        return np.zeros((0, 0), np.int64)
    common = [example for example in places[0] if all(example in of_run for of_run in places)]
    found = [[of_run[example] for example in common] for of_run in places]
    return np.array(found, np.int64).reshape(len(places), len(common))


def linked_ids(keys: Sequence[Sequence[Hashable]]) -> tuple[tuple[int, ...], ...]:
    """Assign the ids 0, 1, 2, … to examples in the order of the first run, then to examples that only later runs have.

    Appending a run leaves the ids of earlier runs unchanged. A key that occurs twice in a run stands for two examples:
    the first one matches the first occurrence in the other runs.

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


def find_turn(points: ArrayLike, onto: ArrayLike) -> Turn:
    """Fit the turn that brings points as close as possible to the same examples on another map.

    Orthogonal Procrustes: minimise the sum of squared distances over all rotations, reflections and translations.

    Args:
        points, onto: [M, D] the common examples on both maps, in the same order.
    With fewer than D + 1 examples, several turns are equally good, and one of them is returned. With no examples, or
    all at one point, the map is not rotated.
    Source: Schönemann 1966, the orthogonal Procrustes problem.
    """
    moving, still = np.asarray(points, np.float64), np.asarray(onto, np.float64)
    count, width = moving.shape
    if not count:
        return Turn(np.zeros(width), np.zeros(width), np.eye(width), 0)
    centre, goal = moving.mean(0), still.mean(0)
    moving, still = moving - centre, still - goal
    left, strengths, right = np.linalg.svd(moving.T @ still)  # [D, D], [D], [D, D]
    rotation = left @ right if strengths.any() else np.eye(width)
    return Turn(centre, goal, rotation, count)
