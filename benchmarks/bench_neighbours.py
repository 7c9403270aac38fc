"""Neighbours and the honesty of a map: ours against scikit-learn, on float32 vectors, as in the store.

One query: the ten nearest by cosine of one of 5,000 vectors of width 768, from a prebuilt index, against
NearestNeighbors(algorithm="brute") fitted once. Both must find the same rows. The peer copies the query's row out of
the matrix, as usual, and requests eleven neighbours to exclude the row itself. Building is timed separately.

Honesty: trustworthiness and overlap, for the map and each point, of a map of 2,000 vectors of width 768, against
sklearn.manifold.trustworthiness, which gives only the mean trustworthiness, on normalised rows. Both must agree on it.

Targets: one query at most 10 ms, a tenth of the time from click to table; honesty within 1 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from benchmarks.measure import in_turn, options, ratios, repeated, report
from core.representation.geometry import normalised
from core.representation.neighbours import NeighbourIndex, map_honesty

ROWS, MAP_ROWS, WIDTH, CLASSES, K = 5000, 2000, 768, 4, 10
# A single query is too short to time.
QUERIES = 50


def vectors(seed: int) -> np.ndarray:
    """[ROWS, WIDTH] in classes, in a narrow cone, as encoders' vectors are."""
    rng = np.random.default_rng(seed)
    centres = 3 + rng.normal(size=(CLASSES, WIDTH))
    return (centres[np.arange(ROWS) % CLASSES] + rng.normal(size=(ROWS, WIDTH))).astype(np.float32)


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Milliseconds of a call, and its result."""
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1000, result


def queries(rows: np.ndarray, repetition: int) -> dict[str, float]:
    """Median milliseconds of a query by each library, alternating, and milliseconds to build the index."""
    building, index = timed(lambda: NeighbourIndex(rows, "cosine"))
    assert isinstance(index, NeighbourIndex)
    peer = NearestNeighbors(n_neighbors=K + 1, metric="cosine", algorithm="brute").fit(rows)
    sides: dict[str, Callable[[int], np.ndarray]] = {
        "ours": lambda of: index.nearest(of, K).indices,
        "scikit-learn": lambda of: peer.kneighbors(rows[of][None], return_distance=False)[0][1:],
    }
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number, of in enumerate(np.random.default_rng(repetition).choice(ROWS, QUERIES, replace=False).tolist()):
        neighbours = []
        for name in in_turn(number, list(sides)):
            elapsed, indices = timed(lambda side=sides[name], of=of: side(of))
            found[name].append(elapsed)
            neighbours.append(indices)
        # The peer orders in float32, whose rounding may exchange the last neighbours.
        if len(np.intersect1d(*neighbours)) < K - 1:
            raise RuntimeError(f"The libraries found different neighbours of row {of}: {neighbours}.")
    return {"building": building} | {name: median(values) for name, values in found.items()}


def honesty(rows: np.ndarray, repetition: int) -> dict[str, float]:
    """Milliseconds of each library on one map."""
    rows = rows[:MAP_ROWS]
    points = rows[:, :2].astype(np.float64)
    sides: dict[str, Callable[[], float]] = {
        "ours": lambda: map_honesty(rows, points, K).trustworthiness,
        "scikit-learn": lambda: float(trustworthiness(normalised(rows), points, n_neighbors=K)),
    }
    found, values = {}, []
    for name in in_turn(repetition, list(sides)):
        found[name], value = timed(sides[name])
        values.append(value)
    if not np.allclose(values, values[0], atol=1e-9):
        raise RuntimeError(f"The libraries give different trustworthiness: {values}.")
    return found


def main() -> None:
    given = options(__doc__, repeats=9)
    query = repeated(given.repeats, lambda seed: queries(vectors(seed), seed), 2, title="query, ms, {}")
    whole = repeated(given.repeats, lambda seed: honesty(vectors(seed), seed), 0, title="honesty, ms, {}")
    report("milliseconds", f"building an index of {ROWS:,} × {WIDTH}", query["building"], "none", 0)
    report("milliseconds", f"one query of {ROWS:,} × {WIDTH}, ours", query["ours"], "≤ 10", 2)
    report("ratio", "one query, ours / scikit-learn brute", ratios(query, "ours", "scikit-learn"), "≤ 1")
    report("milliseconds", f"honesty of a map of {MAP_ROWS:,} × {WIDTH}, ours", whole["ours"], "≤ 1,000", 0)
    times = ratios(whole, "ours", "scikit-learn")
    report("ratio", "honesty, ours (also per point, and overlap) / scikit-learn's mean alone", times, "none")


if __name__ == "__main__":
    main()
