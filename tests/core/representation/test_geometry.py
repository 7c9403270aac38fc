"""Cosines and rank on vectors of known geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from core.representation.geometry import (
    checked_labels,
    checked_rows,
    class_cosines,
    effective_rank,
    geometry,
    mean_pairwise_cosine,
    normalised,
)
from core.representation.projections import pca_map
from tests.cases import each

RNG = np.random.default_rng(0)


def test_rows_get_length_one_and_a_zero_row_stays() -> None:
    rows = normalised(np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [1e30, 1e30]]))
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0], [0.5**0.5, 0.5**0.5]]))


@each("shape", [(2, 1), (5, 3), (40, 8)])
def test_mean_pairwise_cosine_equals_a_loop_over_pairs(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(1).normal(size=shape)
    cosines = [
        rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j])
        for i in range(len(rows))
        for j in range(i)
    ]
    assert mean_pairwise_cosine(rows) == pytest.approx(np.mean(cosines))


def test_mean_pairwise_cosine_of_known_sets() -> None:
    assert mean_pairwise_cosine(np.eye(4)) == pytest.approx(0)
    assert mean_pairwise_cosine(np.ones((4, 3))) == pytest.approx(1)
    assert mean_pairwise_cosine(np.array([[1.0, 0.0], [-2.0, 0.0]])) == pytest.approx(-1)


@each("axes", [1, 2, 5])
def test_as_many_equal_axes_make_that_rank(axes: int) -> None:
    basis = np.linalg.qr(RNG.normal(size=(8, 8)))[0][:axes]
    assert effective_rank(np.concatenate([basis, -basis])) == pytest.approx(axes)


@each("rows", [np.ones((6, 4)), np.zeros((6, 4)), np.full((50, 768), 0.3), np.ones((1, 3))])
def test_no_spread_at_all_has_rank_one(rows: np.ndarray) -> None:
    assert effective_rank(rows) == 1.0


def test_the_rank_is_at_most_one_less_than_the_rows() -> None:
    assert effective_rank(np.eye(5)) == pytest.approx(4)


def pairs_by_loop(rows: np.ndarray, labels: list[int]) -> tuple[list[float], list[float]]:
    """Cosines of pairs within and between classes, one by one."""
    within, between = [], []
    for i in range(len(rows)):
        for j in range(i):
            cosine = float(rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]))
            (within if labels[i] == labels[j] else between).append(cosine)
    return within, between


@each("labels", [[0, 1, 0, 1, 1, 2, 0, 2], [3, 3, 0, 0, 0, 0, 0, 3]])
def test_cosines_within_and_between_classes_equal_a_loop_over_pairs(labels: list[int]) -> None:
    rows = np.random.default_rng(2).normal(size=(8, 5)) + 0.5
    within, between = pairs_by_loop(rows, labels)
    assert class_cosines(rows, labels) == pytest.approx((np.mean(within), np.mean(between)))


def test_pairs_that_do_not_exist_have_no_cosine() -> None:
    rows = np.eye(3)
    assert class_cosines(rows, [0, 1, 2]) == (None, pytest.approx(0))
    assert class_cosines(rows, [1, 1, 1]) == (pytest.approx(0), None)


def test_the_geometry_of_a_frame_names_what_there_is() -> None:
    rows = RNG.normal(size=(6, 4))
    found = geometry(rows, [0, 0, 1, 1, 0, 1])
    assert set(found) == {"mean_cosine", "within_cosine", "between_cosine", "effective_rank"}
    assert found["mean_cosine"] == mean_pairwise_cosine(rows)
    # 15 pairs, 6 of them within a class.
    assert 6 * found["within_cosine"] + 9 * found["between_cosine"] == pytest.approx(15 * found["mean_cosine"])
    assert set(geometry(rows, [0] * 6)) == {"mean_cosine", "within_cosine", "effective_rank"}


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


@each("given", [[1.0, 2.0], 3.0, np.ones((2, 2, 2))])
def test_other_ranks_are_refused_by_name_and_shape(given: object) -> None:
    with pytest.raises(ValueError, match=r"^points = shape \[.*\]: expected a shape \[N, d\]$"):
        checked_rows(given, "points")  # type: ignore[arg-type]


@each("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"embeddings = {bad}: expected finite numbers"):
        checked_rows([[1.0, 2.0], [bad, 0.0]])


@each("given", [[0, 1, -1], (0.0, 1.0, -1.0), np.array([0, 1, -1], np.int8)])
def test_whole_numbers_are_labels(given: object) -> None:
    labels = checked_labels(given, 3)  # type: ignore[arg-type]
    assert labels.dtype == np.int64
    assert labels.tolist() == [0, 1, -1]


@each(("given", "named"), [([0, 1.5], "1.5"), ([np.nan, 1.0], "nan"), (["a", "b"], "'a'")])
def test_others_are_not(given: list[object], named: str) -> None:
    with pytest.raises(ValueError, match=f"labels = {named}: expected whole numbers"):
        checked_labels(given, 2)  # type: ignore[arg-type]


def test_every_example_has_one_label() -> None:
    with pytest.raises(ValueError, match=r"previous = shape \[2\]: expected one for each example, \[3\]"):
        checked_labels([0, 1], 3, "previous")
