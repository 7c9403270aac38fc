"""Vectors for the map tests, and umap-learn as the reference for our UMAP."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np

from core.representation.projections import MapSpec, Projection
from core.representation.projections.entry import PreviousMap
from core.representation.projections.graph import Graph

Array = np.ndarray


def clusters(points: int = 120, width: int = 16, classes: int = 3, *, apart: float = 3.0, seed: int = 0) -> Array:
    """Return [N, H]: noise around `classes` centres. Row i is of class i mod classes."""
    rng = np.random.default_rng(seed)
    centres = np.linalg.qr(rng.normal(size=(width, classes)))[0].T * apart
    return (centres[np.arange(points) % classes] + rng.normal(size=(points, width)) * 0.5).astype(np.float32)


def noisy(vectors: Array, share: float, seed: int = 1) -> Array:
    """Return rows moved by `share` of their length, each in a random direction."""
    noise = np.random.default_rng(seed).normal(size=vectors.shape)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return vectors + share * noise * np.linalg.norm(vectors, axis=1, keepdims=True)


def fitted(entry: Projection, vectors: np.ndarray, dims: int = 2, before: PreviousMap | None = None) -> np.ndarray:
    return entry.fit(vectors, dims, MapSpec(entry.name).settings, 0, before)


def moved(before: Array, after: Array) -> Array:
    """Return the distance moved by each point, in widths of the previous map."""
    return np.linalg.norm(after - before, axis=1) / np.ptp(before, axis=0).max()


def divergence(points: Array, graph: Graph) -> float:
    """Compute KL(P‖Q) of points [N, D], in nats, over all pairs."""
    near = 1 / (1 + ((points[:, None].astype(float) - points[None]) ** 2).sum(2))
    np.fill_diagonal(near, 0)
    return float((graph.weights * np.log(graph.weights / (near / near.sum())[graph.rows, graph.columns])).sum())


ODD: dict[str, Array] = {
    "one row": np.ones((1, 4)),
    "two rows": np.array([[1.0, 0, 0], [0, 1, 0]]),
    "two equal rows": np.ones((2, 4)),
    "three rows": np.eye(3),
    "five rows": np.random.default_rng(0).normal(size=(5, 8)),
    "all rows equal": np.full((20, 4), 0.3),
    "all rows zero": np.zeros((6, 4)),
    "a zero row": np.concatenate([np.zeros((1, 6)), np.random.default_rng(1).normal(size=(19, 6))]),
    "one column": np.array([[1.0], [2.0], [-1.0], [-3.0], [4.0]]),
    "copies": np.repeat(np.random.default_rng(2).normal(size=(6, 5)), 5, axis=0),
    "two columns": np.random.default_rng(3).normal(size=(12, 2)),
}


def umap_learn() -> ModuleType:
    """Import umap-learn, the reference for our UMAP, and ignore its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap.umap_ as module
    return module
