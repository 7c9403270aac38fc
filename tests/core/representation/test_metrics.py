"""Measures, against slow loops, scikit-learn's estimators combined by hand, and vectors at known angles."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cosine, pdist, squareform
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from core.representation import metrics, representation_metrics
from core.representation.metrics import (
    METRICS,
    MetricEntry,
    alignment,
    frame_measures,
    spearman_similarity,
    uniformity,
    within_between_ratio,
)
from tests.cases import each

KEYS = ["linear_svm", "knn1", "ari", "nmi", "alignment", "uniformity", "silhouette", "effective_rank"]
TELL_APART = ["linear_svm", "knn1", "ari", "nmi", "silhouette"]


def blobs(
    n: int = 60, d: int = 6, classes: int = 3, apart: float = 1.5, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return overlapping classes of vectors with unequal lengths, far from the origin."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    rows = rng.normal(size=(n, d)) + apart * rng.normal(size=(classes, d))[labels] + 1.0
    return rows * rng.uniform(0.5, 2.0, size=(n, 1)), labels


def unit(row: np.ndarray) -> np.ndarray:
    return row / math.sqrt(sum(float(x) ** 2 for x in row))


def slow_silhouette(rows: np.ndarray, labels: np.ndarray) -> float:
    apart = squareform(pdist(rows))
    values = []
    for i in range(len(rows)):
        means = {
            label: np.mean([apart[i, j] for j in range(len(rows)) if labels[j] == label and j != i] or [math.nan])
            for label in set(labels.tolist())
        }
        own = means.pop(labels[i])
        nearest = min(means.values())
        values.append(0.0 if math.isnan(own) else (nearest - own) / max(nearest, own))
    return float(np.mean(values))


class TestAll:
    def test_the_svm_and_one_nn_are_loops_over_five_folds(self) -> None:
        rows, labels = blobs(apart=0.8)
        of_svm, of_nearest = [], []
        for train, held_out in StratifiedKFold(n_splits=5, shuffle=True, random_state=0).split(rows, labels):
            svm = LinearSVC(C=1, dual="auto", max_iter=10000, random_state=0).fit(rows[train], labels[train])
            of_svm.append(np.mean(svm.predict(rows[held_out]) == labels[held_out]))
            nearest = [min(train, key=lambda j: math.dist(rows[i], rows[j])) for i in held_out]
            of_nearest.append(np.mean(labels[nearest] == labels[held_out]))
        found = representation_metrics(rows, labels)
        assert found["linear_svm"] == pytest.approx(np.mean(of_svm), abs=1e-12)
        assert 0.4 < np.mean(of_svm) < 1  # neither chance nor perfect, so the settings matter
        assert found["knn1"] == pytest.approx(np.mean(of_nearest), abs=1e-12)

    def test_clusters_are_compared_with_labels(self) -> None:
        rows, labels = blobs()
        found = KMeans(n_clusters=3, n_init=10, random_state=0).fit_predict(rows)
        scores = representation_metrics(rows, labels)
        assert scores["ari"] == pytest.approx(adjusted_rand_score(labels, found))
        assert scores["nmi"] == pytest.approx(normalized_mutual_info_score(labels, found, average_method="arithmetic"))

    def test_silhouette_and_effective_rank_equal_their_definitions(self) -> None:
        rows, labels = blobs(20)
        z = np.array([unit(row) for row in rows])
        values = np.sqrt(np.linalg.eigvalsh((z - z.mean(0)).T @ (z - z.mean(0))))
        shares = values / values.sum()
        found = representation_metrics(rows, labels)
        assert found["silhouette"] == pytest.approx(slow_silhouette(rows, labels))
        assert found["effective_rank"] == pytest.approx(math.exp(-sum(share * math.log(share) for share in shares)))

    def test_half_precision_and_other_names_of_classes_change_little(self) -> None:
        rows, labels = blobs(apart=5.0)
        exact = representation_metrics(rows, labels)
        rounded = representation_metrics(rows.astype(np.float16), (labels * 7 + 3).tolist())
        assert {name: rounded[name] for name in KEYS} == pytest.approx(exact, rel=0.02)


class TestEdges:
    def test_four_examples_of_a_class_are_too_few_for_five_folds(self) -> None:
        rows, labels = blobs(14)  # classes of 5, 5 and 4
        scores = representation_metrics(rows, labels)
        assert [name for name in KEYS if scores[name] is None] == ["linear_svm", "knn1"]

    def test_one_class_has_no_other(self) -> None:
        rows, _ = blobs(12)
        scores = representation_metrics(rows, np.zeros(12, int))
        assert [name for name in KEYS if scores[name] is None] == TELL_APART

    @each("value", [0.0, 0.3])
    def test_equal_vectors_cannot_be_told_apart(self, value: float) -> None:
        scores = representation_metrics(np.full((20, 4), value), np.arange(20) % 2)
        assert [name for name in KEYS if scores[name] is None] == TELL_APART
        assert scores["alignment"] == pytest.approx(0, abs=1e-12)
        assert scores["uniformity"] == pytest.approx(0, abs=1e-12)
        assert scores["effective_rank"] == 1.0

    def test_fewer_different_vectors_than_classes_make_no_such_clusters(self) -> None:
        rows = np.eye(2)[np.arange(30) % 2]
        scores = representation_metrics(rows, np.arange(30) % 3)
        assert scores["ari"] is None
        assert scores["nmi"] is None
        assert scores["knn1"] is not None

    @each("n", [0, 1])
    def test_one_vector_or_none_has_no_measure(self, n: int) -> None:
        assert set(representation_metrics(np.ones((n, 3)), np.zeros(n, int)).values()) == {None}

    def test_a_class_for_every_vector_has_neither_pairs_nor_silhouette(self) -> None:
        rows, _ = blobs(6)
        scores = representation_metrics(rows, np.arange(6))
        assert [name for name in KEYS if scores[name] is None] == ["linear_svm", "knn1", "alignment", "silhouette"]

    def test_a_svm_that_needs_more_iterations_warns_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics, "SVM_ITERATIONS", 1)
        rows, labels = blobs(apart=0.1)
        assert representation_metrics(rows * 100, labels)["linear_svm"] is not None

    def test_labels_and_vectors_are_as_many(self) -> None:
        with pytest.raises(ValueError, match=r"labels = shape \[3\]: expected one for each example, \[4\]"):
            representation_metrics(np.ones((4, 2)), [0, 1, 0])


@pytest.mark.parametrize("numbers", [1, 50, 2**20])
@each(("n", "d", "classes"), [(2, 1, 1), (12, 3, 3), (40, 5, 4)])
def test_alignment_and_uniformity_equal_loops_over_pairs_in_blocks_of_any_size(
    n: int, d: int, classes: int, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "BLOCK_NUMBERS", numbers)
    rows, labels = blobs(n, d, classes)
    apart = {(i, j): float(((unit(rows[i]) - unit(rows[j])) ** 2).sum()) for i, j in combinations(range(n), 2)}
    same = [value for (i, j), value in apart.items() if labels[i] == labels[j]]
    assert alignment(rows, labels) == pytest.approx(np.mean(same), rel=1e-12, abs=1e-15)
    expected = math.log(np.mean([math.exp(-2 * value) for value in apart.values()]))
    assert uniformity(rows) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@each(
    "measure",
    [uniformity, lambda rows: metrics.LabelledVectors(rows, np.arange(len(rows)) % 2).silhouette],
)
def test_memory_stays_far_below_the_matrix_of_all_pairs(measure: Callable[[np.ndarray], float | None]) -> None:
    rows = np.random.default_rng(0).normal(size=(4500, 4))
    tracemalloc.start()
    measure(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4500 * 4500 * 8 * 0.8


def test_within_over_between_equals_a_loop() -> None:
    rows, labels = blobs(25)
    z = np.array([unit(row) for row in rows])
    means = {label: np.mean([z[i] for i in range(25) if labels[i] == label], axis=0) for label in (0, 1, 2)}
    within = sum(float(((z[i] - means[labels[i]]) ** 2).sum()) for i in range(25))
    between = sum(float(((means[labels[i]] - z.mean(0)) ** 2).sum()) for i in range(25))
    assert within_between_ratio(rows, labels) == pytest.approx(within / between)


@each(
    ("rows", "labels", "expected"),
    [
        (np.eye(3)[[0, 0, 1, 2]] * 4, [0, 0, 1, 2], pytest.approx(0, abs=1e-15)),
        (np.eye(3), [0, 0, 0], None),
        (np.full((4, 3), 0.3), [0, 1, 0, 1], None),
        (np.eye(2)[[0, 1, 0, 1]], [0, 0, 1, 1], None),
        (np.empty((0, 3)), [], None),
    ],
)
def test_without_anything_between_there_is_no_ratio(rows: np.ndarray, labels: list[int], expected: object) -> None:
    assert within_between_ratio(rows, labels) == expected


class TestSpearman:
    def test_it_equals_scipy_on_cosines_of_a_loop(self) -> None:
        rng = np.random.default_rng(2)
        first, second = rng.normal(size=(30, 5)), rng.normal(size=(30, 5))
        gold = rng.integers(0, 6, size=30)
        cosines = [1 - cosine(a, b) for a, b in zip(first, second, strict=True)]
        assert spearman_similarity(first, second, gold) == pytest.approx(spearmanr(cosines, gold).statistic)

    def test_equal_pairs_share_a_rank_however_they_are_rounded(self) -> None:
        rng = np.random.default_rng(4)
        rows = rng.normal(size=(5, 700))
        others = rows * rng.uniform(0.1, 3, size=(5, 1))
        others[0] = -rows[0]
        assert spearman_similarity(rows, others, [0, 1, 2, 3, 4]) == pytest.approx(
            spearmanr([-1, 1, 1, 1, 1], [0, 1, 2, 3, 4]).statistic
        )

    @each(("n", "gold"), [(0, []), (1, [1.0]), (3, [2.0, 2.0, 2.0])])
    def test_without_an_order_there_is_none(self, n: int, gold: list[float]) -> None:
        rows = np.random.default_rng(0).normal(size=(n, 4))
        assert spearman_similarity(rows, rows[::-1], gold) is None


def test_the_printed_settings_are_those_of_the_loops() -> None:
    settings = f"C = 1, up to {metrics.SVM_ITERATIONS:,} iterations; mean of 5 stratified folds, shuffled, seed 0"
    assert settings in METRICS["linear_svm"].settings
    assert all("10 starts, seed 0, unnormalised vectors" in METRICS[name].settings for name in ("ari", "nmi"))


def test_a_measure_from_outside_is_computed_with_the_others() -> None:
    entry = MetricEntry("rows", "Rows", "neither", "How many.", "us", measure=lambda given: float(len(given.rows)))
    METRICS.register(entry)
    try:
        found = frame_measures(np.eye(4), [0, 0, 1, 1])
    finally:
        del METRICS["rows"]
    assert found["rows"] == 4
    assert found.keys() - {"rows"} == {*KEYS, "within_between_ratio"}
    assert "rows" not in representation_metrics(np.eye(4), [0, 0, 1, 1])
