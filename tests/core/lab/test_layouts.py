"""Positions of the lab's points before the first step."""

from __future__ import annotations

import itertools

import numpy as np

from core.lab.choices import LAYOUTS, SPACES, Stage
from core.lab.layouts import simplex_corners, start_of, width
from tests.cases import each

EVERY = list(itertools.product(SPACES, LAYOUTS, (2, 3, 4), (6, 31, 60)))


def stage(space: str, layout: str, classes: int = 3, points: int = 30, seed: int = 0) -> Stage:
    return Stage.model_validate({"space": space, "layout": layout, "classes": classes, "points": points, "seed": seed})


@each(("space", "layout", "classes", "points"), EVERY)
def test_every_start_has_its_size_and_every_class(space: str, layout: str, classes: int, points: int) -> None:
    made = stage(space, layout, classes, points)
    start = start_of(made)
    assert start.vectors.shape == (points, 2, width(made))
    assert np.isfinite(start.vectors).all()
    assert set(start.labels.tolist()) == set(range(classes))
    if space in ("circle", "sphere"):
        np.testing.assert_allclose(np.linalg.norm(start.vectors, axis=-1), 1)
    assert (start.class_vectors is None) == (space == "simplex")


def test_the_same_stage_gives_the_same_start_and_another_seed_another() -> None:
    first, again, other = (start_of(stage("circle", "random", seed=seed)).vectors for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_nine_tenths_are_of_one_class() -> None:
    labels = start_of(stage("circle", "imbalanced", classes=3, points=60)).labels
    assert np.bincount(labels).tolist() == [54, 3, 3]
    few = start_of(stage("circle", "imbalanced", classes=4, points=6)).labels
    assert np.bincount(few).tolist() == [3, 1, 1, 1]


def test_a_collapsed_start_is_nearly_one_point() -> None:
    vectors = start_of(stage("sphere", "collapsed")).vectors
    assert np.ptp(vectors, axis=(0, 1)).max() < 0.02
    assert np.ptp(vectors, axis=(0, 1)).min() > 0


def test_the_mislabelled_point_lies_among_those_of_another_class() -> None:
    start = start_of(stage("circle", "mislabelled"))
    first = start.vectors[:, 0]
    middles = np.stack([first[(start.labels == label) & (np.arange(30) > 0)].mean(0) for label in range(3)])
    nearest = np.linalg.norm(first[:, None] - middles, axis=-1).argmin(1)
    assert nearest[0] != start.labels[0]
    assert (nearest[1:] == start.labels[1:]).all()


def test_duplicates_lie_on_a_text_of_their_class_and_two_on_one_of_another() -> None:
    start = start_of(stage("plane", "duplicates", points=30))
    first, labels = start.vectors[:, 0], start.labels
    for place in range(15, 30):
        twins = [other for other in range(15) if (first[other] == first[place]).all()]
        assert twins
        assert all((labels[twin] == labels[place]) == (place < 28) for twin in twins)


@each("classes", [2, 3, 4])
def test_corners_are_equally_far_apart(classes: int) -> None:
    corners = simplex_corners(classes)
    apart = [np.linalg.norm(one - other) for one, other in itertools.combinations(corners, 2)]
    np.testing.assert_allclose(apart, apart[0])
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 1)
    np.testing.assert_allclose(corners.sum(0), 0, atol=1e-12)
