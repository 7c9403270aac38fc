"""Maps that hold still: the points of every frame start from, and are aligned with, those of the previous frame."""

from core.representation.projections.alignment import Points, align
from core.representation.projections.entry import PROJECTIONS, MapSpec, Projection, by_library, still
from core.representation.projections.pca import pca_map
from core.representation.projections.sequence import Placed, keyframes, map_frames, place_new

__all__ = [
    "PROJECTIONS",
    "MapSpec",
    "Placed",
    "Points",
    "Projection",
    "align",
    "by_library",
    "keyframes",
    "map_frames",
    "pca_map",
    "place_new",
    "still",
]
