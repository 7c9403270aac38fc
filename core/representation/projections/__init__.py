"""Stable maps: each frame's map starts from the previous map and is aligned with it."""

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
