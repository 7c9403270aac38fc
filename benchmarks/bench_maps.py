"""Stability of maps: cost of the next frame's map, its trustworthiness, and the movement of points.

Frames are synthetic or those of a run (`--runs DIR --run NAME`). The synthetic frames start as a cloud of 384 numbers
per text without classes, which drifts towards class clusters; some texts drift towards a wrong one. Each frame's map
starts from the previous one.

Measured on several frames, in one warm process, for UMAP and t-SNE:
- time of the next frame's map / of a map of the same frame from scratch (target for UMAP: at most 0.5) and, with
  `--peers 1`, against umap-learn's and scikit-learn's; trustworthiness of both, k = 15 (target: within 0.02), which
  includes the warm-up frame;
- movement of points, in widths of the map (its longer side): between equal frames (target: at most 0.01), and between
  a frame and the same frame with noise of 1 % of the vectors' norm (target: at most 0.05); once, on every frame;
- the first map of a new process, including imports and compilation.

For t-SNE, the script then measures convergence: exact KL(P‖Q) of our map from scratch over that of scikit-learn's with
default settings, both for our P. Data: digits, blobs, a swiss roll, the first and the last synthetic frame and, encoded
by the bundled encoder, film review sentences; each with several seeds, which draw the points (target: at most 1.05).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.manifold import TSNE, trustworthiness
from threadpoolctl import threadpool_limits

from benchmarks.measure import ROOT, encoded_sentences, in_turn, progress, ratios, repeated, report, spread
from core.representation.geometry import normalised
from core.representation.projections import MapSpec, Points
from core.representation.projections.entry import PreviousMap
from core.representation.projections.graph import Graph
from core.representation.projections.tsne import affinities
from core.store import Store

Frames = list[NDArray[np.floating]]

WIDTH, KEYFRAMES, TRUST_K = 384, 24, 15
NOISE = 0.01
FIRST = """
import time
begun = time.perf_counter()
import numpy as np
from core.representation.projections import MapSpec
spec = MapSpec("{method}")
spec.entry.fit(np.random.default_rng(0).normal(size=(1000, 384)), 2, spec.settings, 0, None)
print(time.perf_counter() - begun)
"""

FIRST_PEER = """
import time, warnings
warnings.simplefilter("ignore")
begun = time.perf_counter()
import numpy as np
from umap.umap_ import UMAP
UMAP(random_state=0, n_jobs=1).fit(np.random.default_rng(0).normal(size=(1000, 384)))
print(time.perf_counter() - begun)
"""


def drifting(points: int, classes: int, frames: int = KEYFRAMES, seed: int = 0) -> Frames:
    """Synthetic frames [N, 384]: topics and noise, then class clusters; up to a tenth of the texts join a wrong one."""
    rng = np.random.default_rng(seed)
    spectrum = np.arange(1, WIDTH + 1) ** -0.7
    turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]

    def texture(rows: int) -> NDArray[np.float64]:
        return rng.normal(size=(rows, WIDTH)) * spectrum @ turn

    base = normalised(0.6 * texture(60)[rng.integers(60, size=points)] + texture(points))
    drift = normalised(texture(points))
    labels = rng.integers(classes, size=points)
    learned = np.where(rng.random(points) < 0.1, rng.integers(classes, size=points), labels)
    centres = np.linalg.qr(rng.normal(size=(WIDTH, classes)))[0].T
    certain = np.where(learned == labels, 1.2, 0.8)[:, None]
    result: Frames = []
    for share in np.linspace(0, 1, frames):
        pull = 1 / (1 + np.exp(-12 * (share - 0.35))) - 1 / (1 + np.exp(12 * 0.35))
        vectors = (1 - 0.75 * pull) * base + pull * certain * centres[learned] + 0.3 * share * drift
        result.append((8 * (vectors + 0.4 * (1 - share) * centres[0])).astype(np.float32))
    return result


def frames_of(folder: str, name: str) -> Frames:
    """At most 24 frames of a run, spread evenly."""
    store = Store(folder)
    run_id = store.find(name)
    steps = store.frame_steps(run_id)
    chosen = np.linspace(0, len(steps) - 1, min(KEYFRAMES, len(steps))).round().astype(int)
    return [store.embeddings(run_id, steps[place]) for place in chosen]


def noisy(vectors: NDArray[np.floating], share: float) -> NDArray[np.floating]:
    noise = normalised(np.random.default_rng(1).normal(size=vectors.shape))
    return vectors + share * noise * np.linalg.norm(vectors, axis=1, keepdims=True)


def moved(before: Points, after: Points) -> NDArray[np.floating]:
    """Distance that each point moved, in widths of the previous map."""
    return np.linalg.norm(after - before, axis=1) / np.ptp(before, axis=0).max()


def timed(spec: MapSpec, vectors: NDArray[np.floating], before: PreviousMap | None) -> tuple[Points, float]:
    begun = time.perf_counter()
    points = spec.entry.fit(vectors, spec.dims, spec.settings, spec.seed, before)
    return points, time.perf_counter() - begun


def keyframe_maps(spec: MapSpec, frames: Frames) -> list[Points]:
    """Map of every frame, each from the previous one."""
    maps: list[Points] = []
    for place, vectors in enumerate(frames):
        before = PreviousMap(frames[place - 1], maps[-1]) if maps else None
        maps.append(timed(spec, vectors, before)[0])
    return maps


def peer(method: str, vectors: NDArray[np.floating]) -> tuple[Points, float]:
    """Map of the same frame by the reference library, with one thread and default settings, and its seconds."""
    rows = normalised(vectors)
    begun = time.perf_counter()
    if method == "tsne":
        points = TSNE(init="pca", random_state=0, n_jobs=1).fit_transform(rows)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from umap.umap_ import UMAP
        points = UMAP(random_state=0, n_jobs=1).fit_transform(rows)
    return points, time.perf_counter() - begun


def measure_next(spec: MapSpec, frames: Frames, maps: Sequence[Points], repeats: int, *, peers: bool) -> None:
    """Compare the next map with one from scratch. Repetitions use evenly spaced frames and the last one."""
    trust: dict[str, list[float]] = {"next": [], "cold": [], "peer": []}
    places = np.linspace(1, len(frames) - 1, repeats + 1).round().astype(int)
    if peers:
        peer(spec.method, frames[0][:100])  # its import and first compilation do not count

    def seconds(repetition: int) -> dict[str, float]:
        place, found = places[repetition], {}
        before, vectors = PreviousMap(frames[place - 1], maps[place - 1]), frames[place]
        for name in in_turn(repetition, ["next", "cold"] + ["peer"] * peers):
            if name == "peer":
                points, found[name] = peer(spec.method, vectors)
            else:
                points, found[name] = timed(spec, vectors, before if name == "next" else None)
            trust[name].append(trustworthiness(normalised(vectors), points, n_neighbors=TRUST_K))
        return found

    found = repeated(repeats, seconds, title="{}, s")
    title = f"{spec.method}, {len(frames[0]):,} points"
    target = "≤ 0.5" if spec.method == "umap" else "–"
    report("ratio", f"{title}, next map / from scratch", ratios(found, "next", "cold"), target)
    if peers:
        report("ratio", f"{title}, next map / the reference library's", ratios(found, "next", "peer"), "–")
    for name, values in trust.items():
        if values:
            print(f"{title}, trustworthiness, {name}: {spread(values)}")
    falls = [cold - following for following, cold in zip(trust["next"], trust["cold"], strict=True)]
    print(f"{title}, trustworthiness lost against the map from scratch: {spread(falls)}, target ≤ 0.02", flush=True)


def measure_movement(spec: MapSpec, frames: Frames, maps: Sequence[Points]) -> None:
    """Print median, 95th percentile and maximum over points, in percent, each with its worst frame of the chain."""
    for name, share, target in (("equal", 0.0, "≤ 1 %"), ("noise of 1 %", NOISE, "≤ 5 %")):
        found = []
        for vectors, points in zip(frames, maps, strict=True):
            after, _ = timed(spec, noisy(vectors, share) if share else vectors, PreviousMap(vectors, points))
            gone = 100 * moved(points, after)
            found.append([np.median(gone), np.percentile(gone, 95), gone.max()])
        middle, worst = np.median(found, axis=0), np.max(found, axis=0)
        parts = [
            f"{label} {usual:.2f} (worst frame {most:.2f})"
            for label, usual, most in zip(("median", "95th", "maximum"), middle, worst, strict=True)
        ]
        print(
            f"percent of the width {spec.method}, {len(frames[0]):,} points, {name} frames: {', '.join(parts)}, "
            f"target {target}",
            flush=True,
        )


def data_sets(points: int, seed: int) -> dict[str, NDArray[np.floating]]:
    """Vectors [N, H] of several shapes. The roll is flat enough on the sphere to keep its form when normalised."""
    rng = np.random.default_rng(seed)
    roll = make_swiss_roll(points, noise=0.5, random_state=seed)[0]
    frames, sentences = drifting(points, 5, seed=seed), encoded_sentences()
    digits = load_digits().data
    return {
        "digits": digits[rng.permutation(len(digits))[:points]],
        "blobs": make_blobs(points, 50, centers=10, cluster_std=3.0, random_state=seed)[0],
        "swiss roll": np.hstack([roll / np.abs(roll).max(), np.full((points, 1), 5.0)]),
        "first frame": frames[0],
        "last frame": frames[-1],
        "sentences": sentences[rng.permutation(len(sentences))[:points]],
    }


def divergence(points: Points, graph: Graph) -> float:
    """KL(P‖Q) in nats, over all pairs."""
    exact = points.astype(np.float64)
    squares = (exact * exact).sum(1)
    near = 1 / (1 + np.maximum(squares[:, None] + squares - 2 * exact @ exact.T, 0))
    np.fill_diagonal(near, 0)
    shares = near[graph.rows, graph.columns] / near.sum()
    return float((graph.weights * np.log(graph.weights / shares)).sum())


def measure_divergence(spec: MapSpec, points: int, seeds: int) -> None:
    divergences: dict[str, list[float]] = {}
    times: list[float] = []
    timed(spec, drifting(50, 2, frames=1)[0], None)  # compiles, unless an earlier method has
    for seed in range(seeds):
        for name, vectors in data_sets(points, seed).items():
            graph = affinities(vectors, float(spec.settings["perplexity"]))
            ours, seconds = timed(spec, vectors, None)
            theirs, peer_seconds = peer("tsne", vectors)
            divergences.setdefault(name, []).append(divergence(ours, graph) / divergence(theirs, graph))
            times.append(seconds / peer_seconds)
            progress(seed + 1, {f"{name}, divergence, ours / scikit-learn's": divergences[name][-1]})
    title = f"tsne, {points:,} points, from scratch"
    for name, found in divergences.items():
        print(f"{title}, {name}, divergence / scikit-learn's: {spread(found)}")
    report("ratio", f"{title}, divergence / scikit-learn's", list(chain.from_iterable(divergences.values())), "≤ 1.05")
    report("ratio", f"{title}, time / scikit-learn's", times, "–")


def measure_first(title: str, program: str, repeats: int) -> None:
    found = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=ROOT).stdout)
        for _ in range(repeats)
    ]
    report("seconds", f"{title}, first map of 1,000 points in a new process", found, "–")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("repeats", 7), ("points", 1000), ("classes", 5), ("dims", 2), ("peers", 0)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"[default: {default}]")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of the divergence; 0 skips it")
    parser.add_argument("--methods", nargs="*", default=("umap", "tsne"), help="methods to measure")
    parser.add_argument("--runs", metavar="DIR", help="folder with runs, for frames of a real run")
    parser.add_argument("--run", metavar="NAME", default="", help="name of the run")
    given = parser.parse_args()
    frames = frames_of(given.runs, given.run) if given.runs else drifting(given.points, given.classes)
    print(f"{len(frames)} frames of {len(frames[0]):,} points × {frames[0].shape[1]}", flush=True)
    with threadpool_limits(limits=1):
        for method in given.methods:
            spec = MapSpec(method, given.dims)
            timed(spec, frames[0][:50], None)  # compiles
            maps = keyframe_maps(spec, frames)
            measure_next(spec, frames, maps, given.repeats, peers=bool(given.peers))
            measure_movement(spec, frames, maps)
            measure_first(method, FIRST.format(method=method), min(given.repeats, 3))
        if given.peers and "umap" in given.methods:
            measure_first("umap-learn", FIRST_PEER, min(given.repeats, 3))
        if given.seeds:
            measure_divergence(MapSpec("tsne", 2), given.points, given.seeds)


if __name__ == "__main__":
    main()
