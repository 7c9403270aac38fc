"""How many threads the decompositions of a frame use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from core.representation.geometry import effective_rank
from core.representation.projections import pca_map


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
