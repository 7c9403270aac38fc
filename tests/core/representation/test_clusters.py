"""Clusters of K-means, whose numbers stay the same from frame to frame."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from core.representation.clusters import cluster, match_numbers
from tests.cases import each

RNG = np.random.default_rng(0)


def islands(n: int = 40, count: int = 4) -> tuple[np.ndarray, np.ndarray]:
    places = np.random.default_rng(1).normal(size=(count, 5)) * 20
    belongs = np.arange(n) % count
    return places[belongs] + np.random.default_rng(2).normal(size=(n, 5)), belongs


def test_the_groups_are_those_of_k_means() -> None:
    rows = RNG.normal(size=(60, 5))
    peer = KMeans(n_clusters=4, n_init=10, random_state=0).fit_predict(rows)
    assert adjusted_rand_score(cluster(rows, 4), peer) == 1


def test_without_a_frame_before_they_are_numbered_as_they_come() -> None:
    rows, belongs = islands()
    found = cluster(rows, 4)
    assert found.tolist() == belongs.tolist()
    assert found.dtype == np.int64


@each("numbers", [(3, 0, 2, 1), (7, 5, 1, 0)])
def test_numbers_are_those_of_the_frame_before(numbers: tuple[int, ...]) -> None:
    rows, belongs = islands()
    previous = np.array(numbers)[belongs]
    assert cluster(rows, 4, previous).tolist() == previous.tolist()
    previous[:3] = numbers[0]  # a few were in another cluster
    assert cluster(rows, 4, previous).tolist() == np.array(numbers)[belongs].tolist()


@each("seed", range(3))
def test_no_other_numbering_keeps_more_examples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters, previous = rng.integers(0, 4, size=50), rng.integers(0, 4, size=50)
    matched = match_numbers(clusters, previous)
    most = max(int((np.array(numbers)[clusters] == previous).sum()) for numbers in permutations(range(4)))
    assert int((matched == previous).sum()) == most
    assert adjusted_rand_score(matched, clusters) == 1


def test_a_cluster_without_a_partner_gets_a_number_that_is_free() -> None:
    clusters = np.array([0, 0, 0, 1, 1, 2])
    assert match_numbers(clusters, np.array([1, 1, 1, 1, 1, 1])).tolist() == [1, 1, 1, 0, 0, 2]
    assert match_numbers(clusters, np.array([4, 4, 4, 4, 4, 2])).tolist() == [4, 4, 4, 0, 0, 2]


def test_fewer_clusters_than_before_keep_the_numbers_of_the_largest() -> None:
    rows, belongs = islands(40, 2)
    previous = np.where(belongs == 0, 2, np.where(np.arange(40) < 6, 0, 1))
    assert set(cluster(rows, 2, previous).tolist()) == {1, 2}


@each(("n", "count", "expected"), [(0, 2, 0), (1, 3, 1), (2, 5, 2), (7, 1, 1)])
def test_there_are_at_most_as_many_clusters_as_different_vectors(n: int, count: int, expected: int) -> None:
    rows = np.repeat(RNG.normal(size=(n, 3)), 2, axis=0)
    assert len(set(cluster(rows, count).tolist())) == expected
