"""How a set of vectors lies in its space: cosines within and between classes, and how many directions it fills."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep small decompositions on one thread.

    The threads of OpenBLAS spin while they wait for each other. On a frame's few hundred rows, one thread takes 8 ms;
    two take from 10 ms to 3 s where other processes use the cores.
    """
    found: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return found


@cache
def _thread_pools() -> Any:
    """Those of this process: to look through all its libraries takes longer than a small decomposition."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def normalised(embeddings: Array) -> NDArray[np.float64]:
    """Rows at length 1; a zero row stays zero."""
    rows = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def mean_pairwise_cosine(embeddings: Array) -> float:
    """Mean cosine over unordered pairs of rows [N, d], N ≥ 2; 1 when all point one way."""
    z = normalised(embeddings)
    n = len(z)
    total = z.sum(0)
    return float((total @ total - (z * z).sum()) / (n * (n - 1)))


def effective_rank(embeddings: Array) -> float:
    """exp(entropy of the singular values' shares) of the centred, normalised rows.

    Returns: from 1 (a line) to min(N − 1, d); 1.0 when there is no spread at all.
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


def class_cosines(embeddings: Array, labels: Sequence[int]) -> tuple[float | None, float | None]:
    """Mean cosine over unordered pairs of rows of one class, and of rows of two; None where there is no such pair."""
    z, given = normalised(embeddings), np.asarray(labels)
    sums = np.stack([z[given == label].sum(0) for label in np.unique(given)])  # [C, d]
    counts = np.array([(given == label).sum() for label in np.unique(given)])
    own = (z * z).sum()
    # Σ over ordered pairs of one class is Σ_c |s_c|² − Σ_i |z_i|², over all ordered pairs |Σ_c s_c|² − Σ_i |z_i|².
    of_one = (sums * sums).sum() - own
    total = sums.sum(0)
    of_two = total @ total - own - of_one
    pairs_of_one = (counts * (counts - 1)).sum()
    pairs_of_two = len(z) * (len(z) - 1) - pairs_of_one
    within = float(of_one / pairs_of_one) if pairs_of_one else None
    between = float(of_two / pairs_of_two) if pairs_of_two else None
    return within, between


def geometry(embeddings: Array, labels: Sequence[int]) -> dict[str, float]:
    """The measures of a frame that distinguish a collapse from classes that have drawn together, by name.

    Args:
        embeddings: [N, d], N ≥ 2; labels: [N].
    """
    within, between = class_cosines(embeddings, labels)
    found = {
        "mean_cosine": mean_pairwise_cosine(embeddings),
        "within_cosine": within,
        "between_cosine": between,
        "effective_rank": effective_rank(embeddings),
    }
    return {name: value for name, value in found.items() if value is not None}
