"""The life of a text over all frames of a run: where it was, what was predicted, who was near.

At a step with weights the text was read by the model itself. At the frames between, it is taken to have moved as those
probe examples did that were nearest to it at the steps with weights on both sides. With v_a the text's vector at such a
step a, e_i(s) the vector of example i at step s, i = 1 … k the examples nearest to the text at a and w_i ∝ 1/d_i
(d_i their distance to it on the unit sphere, Σ w_i = 1), the vector at frame f between a and b is

    v(f) = (1 − t)·[v_a + Σ w_i (e_i(f) − e_i(a))] + t·[the same from b],    t = (f − a)/(b − a)

and logits likewise. Behind the last step with weights, t = 0. It is the text's own vector at both ends, and that of an
example where the text is one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from core.artifacts.sentence import Inspected
from core.errors import StoreError
from core.events import FloatArray
from core.representation.geometry import normalised
from core.representation.neighbours import nearest
from core.representation.projections import Points

NEIGHBOURS = 10
NEAREST_DISTANCE = 1e-12

# Embeddings [N, H] and logits [N, C] of the frame at a step; its embeddings alone.
ReadFrame = Callable[[int], tuple[FloatArray, FloatArray]]
ReadVectors = Callable[[int], FloatArray]
Place = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Biography:
    """A text at F frames.

    Attributes:
        steps: of the frames.
        exact: whether the model itself read the text at that step; else vectors and logits are estimates.
        vectors: [F, H].
        logits: [F, C].
        neighbours: [F, k] rows of the probe, the nearest by cosine first, ties to the lowest row.
        stayed: how many of a frame's neighbours were neighbours at the first frame.
    """

    steps: tuple[int, ...]
    exact: tuple[bool, ...]
    vectors: FloatArray
    logits: FloatArray
    neighbours: NDArray[np.int64]
    stayed: tuple[int, ...]

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """[F, C]."""
        return softmax(self.logits.astype(np.float64), axis=1)

    @property
    def predictions(self) -> NDArray[np.int64]:
        """[F] numbers of classes."""
        return self.logits.argmax(1)


class _Anchor(NamedTuple):
    """A step with weights: the text there, and the k examples near it with their weights."""

    vector: FloatArray
    logits: FloatArray
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    embeddings: FloatArray
    scores: FloatArray

    def moved(self, embeddings: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where the text would be, had it moved as those examples have since."""
        vector = self.vector + self.weights @ (embeddings[self.rows] - self.embeddings)
        own_scores = self.logits + self.weights @ (scores[self.rows] - self.scores)
        return vector.astype(np.float32), own_scores.astype(np.float32)


def biography(found: Inspected, frames: Sequence[int], read: ReadFrame, *, k: int = NEIGHBOURS) -> Biography:
    """A text at every frame.

    Args:
        found: the text at the steps whose weights are kept; those that are no frames count for nothing.
        frames: steps in order.
        read: gives a frame; one is held at a time.
        k: neighbours, at most N.
    Raises: StoreError where no frame has weights, and what `read` raises.
    """
    numbers = {step: number for number, step in enumerate(found.steps) if step in set(frames)}
    if not numbers:
        raise StoreError("No frame of the run is at a step whose weights are kept: wait for its first frame.")
    anchors = {s: _anchor(found.vectors[n], found.logits[n], *read(s), k) for s, n in sorted(numbers.items())}
    vectors: list[FloatArray] = []
    logits: list[FloatArray] = []
    neighbours: list[NDArray[np.int64]] = []
    for step in frames:
        embeddings, scores = read(step)
        vector, own_scores = _at(step, anchors, embeddings, scores)
        vectors.append(vector)
        logits.append(own_scores)
        neighbours.append(_near(embeddings, vectors[-1], k))
    first = set(neighbours[0].tolist())
    stayed = tuple(len(first.intersection(rows.tolist())) for rows in neighbours)
    exact = tuple(step in anchors for step in frames)
    return Biography(tuple(frames), exact, np.stack(vectors), np.stack(logits), np.stack(neighbours), stayed)


def path(
    life: Biography, maps: Mapping[int, Points], read: ReadVectors, *, linear: bool, reference: int | None = None
) -> list[Place | None]:
    """Where the text lies on the map of each of its F frames; None on one without a map.

    Args:
        maps: [N, D] by step.
        read: step → embeddings [N, H].
        linear: whether the maps are linear in the vectors (PCA), so that the place is exact.
        reference: the one step whose map decides where everything lies, for maps that were fitted once; None where each
            frame decides for itself.
    """
    from core.representation.projections import place_new

    if reference is not None and reference not in maps:
        return [None] * len(life.steps)
    if reference is not None:
        placed = place_new(maps[reference], read(reference), life.vectors, linear=linear)
        return [_place(row) if step in maps else None for step, row in zip(life.steps, placed, strict=True)]
    return [
        _place(place_new(maps[step], read(step), vector[np.newaxis], linear=linear)[0]) if step in maps else None
        for step, vector in zip(life.steps, life.vectors, strict=True)
    ]


def _place(row: Points) -> Place:
    return tuple(float(value) for value in row)


def _anchor(vector: FloatArray, logits: FloatArray, embeddings: FloatArray, scores: FloatArray, k: int) -> _Anchor:
    rows = _near(embeddings, vector, k)
    distances = np.linalg.norm(normalised(embeddings[rows]) - normalised(vector[np.newaxis]), axis=1)
    weights = 1 / np.maximum(distances, NEAREST_DISTANCE)
    return _Anchor(vector, logits, rows, weights / weights.sum(), embeddings[rows], scores[rows])


def _at(
    step: int, anchors: dict[int, _Anchor], embeddings: FloatArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Vector and logits at a frame: the model's own, or estimated from the steps with weights on both its sides."""
    if step in anchors:
        return anchors[step].vector, anchors[step].logits
    known = list(anchors)
    right = bisect_right(known, step)
    if right in (0, len(known)):
        return anchors[known[0 if right == 0 else -1]].moved(embeddings, scores)
    (before, scores_before), (after, scores_after) = (
        anchors[s].moved(embeddings, scores) for s in known[right - 1 : right + 1]
    )
    share = np.float32((step - known[right - 1]) / (known[right] - known[right - 1]))
    return (1 - share) * before + share * after, (1 - share) * scores_before + share * scores_after


def _near(embeddings: FloatArray, vector: FloatArray, k: int) -> NDArray[np.int64]:
    """The k rows nearest by cosine; a scan in float32 leaves out what rounding cannot bring among them."""
    lengths = np.sqrt(np.einsum("nh,nh->n", embeddings, embeddings)) * np.linalg.norm(vector)
    cosines = (embeddings @ vector) / np.maximum(lengths, np.finfo(np.float32).tiny)
    k = min(k, len(cosines))
    off = 4 * (len(vector) + 8) * np.finfo(np.float32).eps
    candidates = np.flatnonzero(cosines >= np.partition(cosines, -k)[-k] - off)
    return candidates[nearest(embeddings[candidates], vector, k).indices]
