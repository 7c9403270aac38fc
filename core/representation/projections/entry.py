"""The registry of projections. Each projection module of this folder ends with an entry that describes it.

Heavy libraries are imported only when a projection is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from core.messages import N_
from core.parameters import Parameter, Value
from core.registry import Registry
from core.representation.geometry import Array
from core.representation.projections.alignment import Points

Mode = Literal["each", "once"]
MODES: Mapping[Mode, str] = {"each": N_("Follow the model"), "once": N_("Fit once, place the others")}


@dataclass(frozen=True, slots=True)
class PreviousMap:
    """A frame that already has a map.

    Attributes:
        embeddings: [N, H].
        points: [N, D], the coordinates of the same examples.
    """

    embeddings: Array
    points: Points


class Fit(Protocol):
    """Fit embeddings [N, H] → [N, D], starting from the previous map if there is one."""

    def __call__(
        self, embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None
    ) -> Points: ...


class Onto(Protocol):
    """Place embeddings [M, H] → [M, D] on the map of a reference frame."""

    def __call__(self, embeddings: Array, reference: PreviousMap, settings: Mapping[str, Value]) -> Points: ...


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection: its computation and its presentation in forms.

    Attributes:
        place: position in lists.
        onto: places other frames on the map of one (None: the projection has no mode "once").
        caution: a short sentence, shown with every map, on what the map cannot show; empty for none.
        linear: whether a point is a linear function of its normalised vector.
        quick: whether every frame is fitted; otherwise only keyframes are, and the others are interpolated.
        library: the library that lays it out, for comparison; empty for our own projections, which hold still.
        same_as: for a library's projection, our own projection of the same kind.
    """

    name: str
    label: str
    place: int
    source: str
    about: str
    fit: Fit
    onto: Onto | None = None
    caution: str = ""
    parameters: tuple[Parameter, ...] = ()
    linear: bool = False
    quick: bool = False
    library: str = ""
    same_as: str = ""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The available modes, the usual one first."""
        return ("each",) if self.onto is None else ("each", "once")


# Extensions add a projection with `PROJECTIONS.register`.
PROJECTIONS: Registry[Projection] = Registry("method")


def still() -> dict[str, Projection]:
    """Return our own projections, which hold still."""
    return {name: entry for name, entry in PROJECTIONS.items() if not entry.library}


def by_library() -> dict[str, Projection]:
    """Return the projections of libraries, by the name of our own projection of the same kind."""
    return {entry.same_as: entry for entry in PROJECTIONS.values() if entry.library}
