"""Cosines and rank of vectors with known geometry."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from core.representation.geometry import (
    checked_labels,
    checked_rows,
    effective_rank,
    geometry,
    normalised,
)
from core.representation.projections import pca_map
from tests.cases import each


def test_rows_get_length_one_and_a_zero_row_stays() -> None:
    rows = normalised(np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [1e30, 1e30]]))
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0], [0.5**0.5, 0.5**0.5]]))


@each(("rows", "rank"), [(np.ones((6, 4)), 1), (np.zeros((6, 4)), 1), (np.full((50, 768), 0.3), 1), (np.eye(5), 4)])
def test_the_rank_is_one_without_spread_and_at_most_one_less_than_the_rows(rows: np.ndarray, rank: int) -> None:
    assert effective_rank(rows) == pytest.approx(rank)


@each("labels", [[0, 1, 0, 1, 1, 2, 0, 2], [0, 1, 2, 3, 4, 5, 6, 7], [3] * 8])
def test_the_geometry_of_a_frame_equals_loops_over_the_pairs_that_exist(labels: list[int]) -> None:
    rows = np.random.default_rng(2).normal(size=(8, 5)) + 0.5
    pairs = {
        (i, j): float(rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]))
        for i, j in combinations(range(8), 2)
    }
    expected = {
        "mean_cosine": [*pairs.values()],
        "within_cosine": [cosine for (i, j), cosine in pairs.items() if labels[i] == labels[j]],
        "between_cosine": [cosine for (i, j), cosine in pairs.items() if labels[i] != labels[j]],
        "effective_rank": [effective_rank(rows)],
    }
    assert geometry(rows, labels) == pytest.approx({name: np.mean(of) for name, of in expected.items() if of})


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_a_frame_is_decomposed_on_one_thread_and_the_others_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    used, svd = [], np.linalg.svd

    def counted(*given: Any, **settings: Any) -> Any:
        used.append(blas_threads())
        return svd(*given, **settings)

    monkeypatch.setattr(np.linalg, "svd", counted)
    rows = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        effective_rank(rows)
        pca_map(rows)
        assert blas_threads() == before
    assert used == [{1}, {1}]


def test_single_precision_stays_and_everything_else_becomes_double() -> None:
    single = np.ones((2, 3), np.float32)
    assert checked_rows(single) is single
    for given in ([[1, 2]], np.ones((1, 2), np.float16), np.ones((1, 2), np.int64)):
        assert checked_rows(given).dtype == np.float64


@each("given", [[0, 1, -1], (0.0, 1.0, -1.0), np.array([0, 1, -1], np.int8)])
def test_whole_numbers_are_labels(given: object) -> None:
    labels = checked_labels(given, 3)  # type: ignore[arg-type]
    assert labels.dtype == np.int64
    assert labels.tolist() == [0, 1, -1]


def two_labels(given: object) -> object:
    return checked_labels(given, 2)  # type: ignore[arg-type]


@each(
    ("check", "given", "message"),
    [
        (checked_rows, [1.0, 2.0], r"^embeddings = shape \[2\]: expected a shape \[N, d\]$"),
        (checked_rows, np.ones((2, 2, 2)), r"^embeddings = shape \[2, 2, 2\]: expected"),
        (checked_rows, [[1.0, 2.0], [np.nan, 0.0]], "embeddings = nan: expected finite numbers"),
        (checked_rows, [[1.0, 2.0], [-np.inf, 0.0]], "embeddings = -inf: expected finite numbers"),
        (two_labels, [0, 1.5], "labels = 1.5: expected whole numbers"),
        (two_labels, [np.nan, 1.0], "labels = nan: expected whole numbers"),
        (two_labels, ["a", "b"], "labels = 'a': expected whole numbers"),
        (two_labels, [0, 1, 2], r"labels = shape \[3\]: expected one for each example, \[2\]"),
    ],
)
def test_what_are_no_vectors_or_labels_is_refused(check: Any, given: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(given)
