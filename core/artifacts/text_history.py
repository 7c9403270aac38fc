"""The history of a text over all frames of a run: its positions, predictions and nearest examples.

At a step with weights, the model itself encodes the text. At the frames between two such steps a and b, the text is
assumed to move like the probe examples that are nearest to it at a and at b. Let v_a be the text's vector at step a,
e_i(s) the vector of example i at step s, and i = 1 … k the examples nearest to the text at a. Let w_i ∝ 1/d_i, with d_i
the distance of example i to the text on the unit sphere, and Σ w_i = 1. Then the vector at frame f between a and b is

    v(f) = (1 − t)·[v_a + Σ w_i (e_i(f) − e_i(a))] + t·[the same from b],    t = (f − a)/(b − a)

and likewise for logits. Before the first and after the last step with weights, the estimate uses that step alone. At
a and b, the result is the text's own vector. If the text is a probe example, the result is that example's vector.
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
from core.representation.neighbours import NeighbourIndex
from core.representation.projections import Points, place_new

NEIGHBOURS = 10
NEAREST_DISTANCE = 1e-12

# Functions that return embeddings [N, H] and logits [N, C] of the frame at a step, or its embeddings alone.
ReadFrame = Callable[[int], tuple[FloatArray, FloatArray]]
ReadVectors = Callable[[int], FloatArray]
Place = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Biography:
    """A text at F frames.

    Attributes:
        steps: steps of the frames.
        exact: whether the model itself encoded the text at that step; otherwise vectors and logits are estimates.
        vectors: [F, H].
        logits: [F, C].
        neighbours: [F, k] rows of the probe set, the nearest by cosine first; ties go to the lowest row.
        stayed: [F] number of neighbours that were also neighbours at the first frame.
    """

    steps: tuple[int, ...]
    exact: tuple[bool, ...]
    vectors: FloatArray
    logits: FloatArray
    neighbours: NDArray[np.int64]
    stayed: tuple[int, ...]

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Class probabilities [F, C]."""
        return softmax(self.logits.astype(np.float64), axis=1)

    @property
    def predictions(self) -> NDArray[np.int64]:
        """Predicted class numbers [F]."""
        return self.logits.argmax(1)


class _Anchor(NamedTuple):
    """A step with weights: the text at that step, and its k nearest examples with their weights."""

    vector: FloatArray
    logits: FloatArray
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    embeddings: FloatArray
    scores: FloatArray

    def moved(self, embeddings: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Estimate the text's vector and logits, as if it had moved like its nearest examples."""
        vector = self.vector + self.weights @ (embeddings[self.rows] - self.embeddings)
        own_scores = self.logits + self.weights @ (scores[self.rows] - self.scores)
        return vector.astype(np.float32), own_scores.astype(np.float32)


def biography(found: Inspected, frames: Sequence[int], read: ReadFrame, *, k: int = NEIGHBOURS) -> Biography:
    """Compute the history of a text over every frame.

    Args:
        found: the text at the steps with stored weights; steps without a frame are ignored.
        frames: steps in order.
        read: returns a frame; only one frame is in memory at a time.
        k: number of neighbours, at most N.
    Raises: StoreError if no frame has weights; errors of `read`.
    """
    numbers = {step: number for number, step in enumerate(found.steps) if step in set(frames)}
    if not numbers:
        raise StoreError("No frame of the run is at a step with stored weights: wait for its first frame.")
    anchors: dict[int, _Anchor] = {}
    for step, number in sorted(numbers.items()):
        vector, (embeddings, scores) = found.vectors[number], read(step)
        rows = _near(embeddings, vector, k)
        distances = np.linalg.norm(normalised(embeddings[rows]) - normalised(vector[np.newaxis]), axis=1)
        weights = 1 / np.maximum(distances, NEAREST_DISTANCE)
        weights /= weights.sum()
        anchors[step] = _Anchor(vector, found.logits[number], rows, weights, embeddings[rows], scores[rows])
    at_frames = []
    for step in frames:
        embeddings, scores = read(step)
        vector, own_scores = _at(step, anchors, embeddings, scores)
        at_frames.append((vector, own_scores, _near(embeddings, vector, k)))
    vectors, logits, neighbours = (np.stack(arrays) for arrays in zip(*at_frames, strict=True))
    first = set(neighbours[0].tolist())
    stayed = tuple(len(first.intersection(rows)) for rows in neighbours.tolist())
    exact = tuple(step in anchors for step in frames)
    return Biography(tuple(frames), exact, vectors, logits, neighbours, stayed)


def path(
    life: Biography, maps: Mapping[int, Points], read: ReadVectors, *, linear: bool, reference: int | None = None
) -> list[Place | None]:
    """Place the text on the map of each of its F frames; None for a frame without a map.

    Args:
        maps: [N, D] by step.
        read: step → embeddings [N, H].
        linear: whether the maps are linear in the vectors (PCA), so that the position is exact.
        reference: the step whose map all positions refer to, for maps fitted once; None if each frame has its own.
    """
    if reference is not None and reference not in maps:
        return [None] * len(life.steps)
    if reference is not None:
        placed = place_new(maps[reference], read(reference), life.vectors, linear=linear)
        return [tuple(row.tolist()) if step in maps else None for step, row in zip(life.steps, placed, strict=True)]

    def place(step: int, vector: FloatArray) -> Place:
        return tuple(place_new(maps[step], read(step), vector[np.newaxis], linear=linear)[0].tolist())

    vectors = zip(life.steps, life.vectors, strict=True)
    return [place(step, vector) if step in maps else None for step, vector in vectors]


def _at(
    step: int, anchors: dict[int, _Anchor], embeddings: FloatArray, scores: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return vector and logits at a frame: the model's own, or estimated from the nearest steps with weights."""
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
    """Return the k rows nearest by cosine. A float32 scan first discards rows that rounding cannot make nearest."""
    lengths = np.sqrt(np.einsum("nh,nh->n", embeddings, embeddings)) * np.linalg.norm(vector)
    cosines = (embeddings @ vector) / np.maximum(lengths, np.finfo(np.float32).tiny)
    k = min(k, len(cosines))
    off = 4 * (len(vector) + 8) * np.finfo(np.float32).eps
    candidates = np.flatnonzero(cosines >= np.partition(cosines, -k)[-k] - off)
    return candidates[NeighbourIndex(embeddings[candidates]).nearest(vector, k).indices]
