"""Checks, normalisation and geometry of a set of vectors.

The geometry is the mean cosines overall, within and between classes, and the effective rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import quote_value

Array = NDArray[np.floating]
Whole = NDArray[np.int64]


def checked_rows(embeddings: ArrayLike) -> Array:
    """Return vectors [N, d] in float64, or in float32 if the input is float32.

    Raises: ValueError naming the argument, its value and what is expected.
    """
    rows = np.asarray(embeddings)
    if rows.ndim != 2:
        raise ValueError(f"embeddings = shape {list(rows.shape)}: expected a shape [N, d]")
    rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
    if not np.isfinite(rows).all():
        raise ValueError(f"embeddings = {quote_value(rows[~np.isfinite(rows)][0])}: expected finite numbers")
    return rows


def checked_labels(labels: ArrayLike, count: int) -> Whole:
    """Return integer labels [N], one for each of `count` examples.

    Raises: ValueError naming the argument, its value and what is expected.
    """
    given: NDArray[Any] = np.asarray(labels)
    if given.shape != (count,):
        raise ValueError(f"labels = shape {list(given.shape)}: expected one for each example, [{count}]")
    whole = given == np.rint(given) if given.dtype.kind in "biuf" else np.zeros(count, bool)
    if not whole.all():
        raise ValueError(f"labels = {quote_value(given[~whole].tolist()[0])}: expected whole numbers")
    return given.astype(np.int64)


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread, for small decompositions.

    The threads of OpenBLAS spin while they wait for each other. On a frame's few hundred rows, one thread takes 8 ms.
    Two threads take from 10 ms to 3 s if other processes use the cores.
    """
    found: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return found


@cache
def _thread_pools() -> Any:
    """Return the thread pools of this process. The search takes longer than a small decomposition, so it is cached."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def normalised(embeddings: Array) -> NDArray[np.float64]:
    """Scale rows to length 1; a zero row stays zero."""
    rows = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def effective_rank(embeddings: Array) -> float:
    """Compute exp(entropy of the singular values' shares) of the normalised, then centred rows.

    Returns: from 1 (a line) to min(N − 1, d); 1.0 if all normalised rows are equal.
    Source: Roy & Vetterli 2007.
    """
    z = normalised(embeddings)
    with one_blas_thread():
        values = np.linalg.svd(z - z.mean(0), compute_uv=False)
    if values.sum() <= len(z) * np.finfo(np.float64).eps:
        return 1.0
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def geometry(embeddings: Array, labels: Sequence[int]) -> dict[str, float]:
    """Compute the measures of a frame that distinguish a collapse from tight classes.

    Args:
        embeddings: [N, d], N ≥ 2; labels: [N].
    Returns: by name, the effective rank and the mean cosine over unordered pairs of rows: all pairs, pairs within a
        class and pairs between classes. A mean over no pairs is left out.
    """
    z, given = normalised(embeddings), np.asarray(labels)
    sums = np.stack([z[given == label].sum(0) for label in np.unique(given)])  # [C, d]
    counts = np.array([(given == label).sum() for label in np.unique(given)])
    all_pairs = len(z) * (len(z) - 1)
    pairs_of_one = (counts * (counts - 1)).sum()
    # Σ over ordered pairs of one class is Σ_c |s_c|² − Σ_i |z_i|²; over all ordered pairs, |Σ_c s_c|² − Σ_i |z_i|².
    own = (z * z).sum()
    of_one = (sums * sums).sum() - own
    whole, total = z.sum(0), sums.sum(0)
    found = {"mean_cosine": float((whole @ whole - own) / all_pairs)}
    if pairs_of_one:
        found["within_cosine"] = float(of_one / pairs_of_one)
    if pairs_of_one < all_pairs:
        found["between_cosine"] = float((total @ total - own - of_one) / (all_pairs - pairs_of_one))
    return found | {"effective_rank": effective_rank(embeddings)}
