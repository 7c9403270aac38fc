"""How the processes that we start use the processor: what must be set before a library with threads is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping

# By default OpenMP's threads spin at every barrier. Beside another busy process one of them then waits for a processor
# that the others hold by spinning. With threads that sleep a step beside such a process takes half the time, and one
# with the machine to itself a quarter more (two cores, benchmarks/bench_contention.py).
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
# Thread pools are made when a library is imported. One thread also adds numbers in one order: the same map again.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "RAYON")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that we start: ours, where a person's own waiting policy holds, and `more`."""
    return {**PATIENT, **os.environ, **more}
