"""How many threads numpy's linear algebra uses."""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep small decompositions on one thread.

    The threads of OpenBLAS spin while they wait for each other. On a frame's few hundred rows, one thread takes 8 ms;
    two take from 10 ms to 3 s where other processes use the cores.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(limits=1, user_api="blas")
