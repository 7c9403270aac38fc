"""How vectors become points: each projection of this folder ends its own file with an entry, which says what it is.

Nothing heavy is imported before one is fitted.
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
    """A frame that has its map already.

    Attributes:
        embeddings: [N, H].
        points: [N, D], the places of the same examples.
    """

    embeddings: Array
    points: Points


class Fit(Protocol):
    """Embeddings [N, H] → [N, D], going on from the map before where there is one."""

    def __call__(
        self, embeddings: Array, dims: int, settings: Mapping[str, Value], seed: int, before: PreviousMap | None
    ) -> Points: ...


class Onto(Protocol):
    """Embeddings [M, H] → [M, D] on the map of a reference frame."""

    def __call__(self, embeddings: Array, reference: PreviousMap, settings: Mapping[str, Value]) -> Points: ...


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection as people and forms see it, and as maps are made with it.

    Attributes:
        place: where it comes in lists.
        onto: how other frames come onto the map of one (None: it has no mode "once").
        caution: a short sentence that is shown with every map, about what it cannot show; empty for none.
        linear: whether a point is a linear function of its normalised vector.
        quick: whether every frame is fitted, instead of keyframes with the others placed between.
        library: the library that lays it out, for comparing ours with it; empty for our own, which hold still.
        same_as: our own projection of the same kind, where a library lays it out.
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
        """What it can do, the usual mode first."""
        return ("each",) if self.onto is None else ("each", "once")


# A projection from outside is added by `PROJECTIONS.register`.
PROJECTIONS: Registry[Projection] = Registry("method")


def still() -> dict[str, Projection]:
    """Our own, which hold still."""
    return {name: entry for name, entry in PROJECTIONS.items() if not entry.library}


def by_library() -> dict[str, Projection]:
    """By the name of one of our own, the same as a library lays it out."""
    return {entry.same_as: entry for entry in PROJECTIONS.values() if entry.library}
