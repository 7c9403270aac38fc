"""Stable maps: each frame's map starts from the previous map and is aligned with it."""

from core.representation.projections.alignment import Points, align
from core.representation.projections.entry import (
    PROJECTIONS,
    MapSpec,
    Projection,
    library_projections,
    stable_projections,
)
from core.representation.projections.pca import pca_map
from core.representation.projections.sequence import Placed, keyframes, map_frames, place_new
