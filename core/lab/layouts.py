"""Layouts of the points before the first step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.lab.choices import Layout, Space, Stage

Array = NDArray[np.float64]

# Standard deviations: of the second view around the first, within a cluster, and of a collapse.
VIEW_NOISE, CLUSTER_NOISE, COLLAPSE_NOISE = 0.12, 0.15, 1e-3
LARGE_SHARE = 0.9
# Logit of the cluster's class on the simplex.
LOGIT = 2.0


class Start(NamedTuple):
    """A start: vectors [N, 2, d] of two views of each text, labels [N] and class vectors [C, d].

    On the simplex, the vectors are logits, d = C, and there are no class vectors.
    """

    vectors: Array
    labels: NDArray[np.int64]
    class_vectors: Array | None


def start_of(stage: Stage) -> Start:
    """Compute the start of a stage. It depends on the stage only, not on the loss."""
    random = np.random.default_rng([stage.seed, stage.points, stage.classes])
    # Labels are balanced. In "imbalanced", one class has 90 % of the texts, or fewer if a class would be empty.
    places = np.arange(stage.points)
    labels = places % stage.classes
    if stage.layout == "imbalanced":
        large = min(round(LARGE_SHARE * stage.points), stage.points - (stage.classes - 1))
        labels = np.where(places < large, 0, 1 + places % (stage.classes - 1))
    first = on_space(LAYOUTS[stage.layout](stage, labels, random), stage.space)
    second = on_space(first + VIEW_NOISE * random.standard_normal(first.shape), stage.space)
    if stage.layout == "collapsed":
        second = on_space(first + COLLAPSE_NOISE * random.standard_normal(first.shape), stage.space)
    class_vectors = None
    if stage.space != "simplex":
        class_vectors = unit(random.standard_normal((stage.classes, first.shape[1])))
    return Start(np.stack([first, second], axis=1), labels, class_vectors)


def width(stage: Stage) -> int:
    """Return d, the dimension of the vectors."""
    return {"circle": 2, "sphere": 3, "plane": 2, "simplex": stage.classes}[stage.space]


def on_space(vectors: Array, space: Space) -> Array:
    """Normalise vectors [..., d] on circle and sphere; return them unchanged in other spaces."""
    return unit(vectors) if space in ("circle", "sphere") else vectors


def simplex_corners(classes: int) -> Array:
    """Return the corners [C, 2 or 3] of the simplex, of unit length: a line, a triangle or a tetrahedron."""
    if classes == 2:
        return np.array([[-1.0, 0.0], [1.0, 0.0]])
    if classes == 3:
        angle = np.pi / 2 + 2 * np.pi * np.arange(3) / 3
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)


def unit(vectors: Array) -> Array:
    """Normalise vectors to length 1; a zero vector stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: Array = vectors / np.where(length > 0, length, 1.0)
    return found


def _random(stage: Stage, labels: NDArray[np.int64], random: np.random.Generator) -> Array:
    return random.standard_normal((len(labels), width(stage)))


def _collapsed(stage: Stage, labels: NDArray[np.int64], random: np.random.Generator) -> Array:
    """Place nearly all points at one position."""
    place = np.zeros(width(stage)) if stage.space == "simplex" else unit(np.ones(width(stage)))
    return place + COLLAPSE_NOISE * random.standard_normal((len(labels), width(stage)))


def _moons(stage: Stage, labels: NDArray[np.int64], random: np.random.Generator) -> Array:
    """Place each class on one of several interleaved half circles."""
    shares = random.random(len(labels))
    turn = 2 * np.pi * labels / stage.classes
    angle = turn + np.pi * (shares * 1.3 - 0.15)
    found = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.35 * np.stack([np.sin(turn), -np.cos(turn)], axis=1)
    found = found + 0.05 * random.standard_normal(found.shape)
    if width(stage) > 2:
        deep = 0.2 * random.standard_normal((len(labels), width(stage) - 2))
        found = np.concatenate([found, deep], axis=1)
    return found


def _mislabelled(stage: Stage, labels: NDArray[np.int64], random: np.random.Generator) -> Array:
    """Place each class in a cluster, evenly spaced, with the first text in the cluster of the next class."""
    where = labels.copy()
    where[0] = (labels[0] + 1) % stage.classes
    noise = CLUSTER_NOISE * random.standard_normal((len(labels), width(stage)))
    if stage.space == "simplex":
        return LOGIT * np.eye(stage.classes)[where] + 3 * noise
    angle = 2 * np.pi * np.arange(stage.classes) / stage.classes + 0.4
    middles = np.stack([np.cos(angle), np.sin(angle), np.zeros(stage.classes)], axis=1)[:, : width(stage)]
    return middles[where] + noise


def _duplicates(stage: Stage, labels: NDArray[np.int64], random: np.random.Generator) -> Array:
    """Place random points, and each text of the second half on one of the first half.

    The duplicates are of the same class, except for the last two, which are of another class.
    """
    found = _random(stage, labels, random)
    half = len(labels) // 2
    for place in range(half, len(labels)):
        same = np.flatnonzero(labels[:half] == labels[place])
        others = np.flatnonzero(labels[:half] != labels[place])
        pool = others if place >= len(labels) - 2 else same
        found[place] = found[random.choice(pool if len(pool) else np.arange(half))]
    return found


LAYOUTS: Mapping[Layout, Callable[[Stage, NDArray[np.int64], np.random.Generator], Array]] = {
    "random": _random,
    "collapsed": _collapsed,
    "moons": _moons,
    "mislabelled": _mislabelled,
    "imbalanced": _random,
    "duplicates": _duplicates,
}
