"""What a new map starts from."""

from __future__ import annotations

from dataclasses import dataclass

from core.representation.geometry import Array
from core.representation.projections.alignment import Points


@dataclass(frozen=True, slots=True)
class PreviousMap:
    """A frame that has its map already.

    Attributes:
        embeddings: [N, H].
        points: [N, D], the places of the same examples.
    """

    embeddings: Array
    points: Points
