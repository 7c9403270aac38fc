"""The registry of projections, and the specification that determines a map of given frames.

Each projection module of this folder ends with an entry that describes it. Heavy libraries are imported only when a
projection is fitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from core.errors import ConfigError
from core.messages import N_, join_list
from core.parameters import Parameter, Value, check_parameters
from core.registry import Registry
from core.representation.geometry import Array
from core.representation.projections.alignment import Points

Mode = Literal["each", "once"]
MODES: Mapping[Mode, str] = {"each": N_("Fit every frame"), "once": N_("Fit once, project the others")}
# Increase with every change that moves a point, so that older maps have a different key.
VERSION = 2
DIMS = (2, 3)
MOST_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True)
class PreviousMap:
    """A frame that already has a map.

    Attributes:
        embeddings: [N, H].
        points: [N, D], the coordinates of the same examples.
    """

    embeddings: Array
    points: Points


# (embeddings [N, H], D, settings, seed, the previous map if there is one) → [N, D]
Fit = Callable[[Array, int, Mapping[str, Value], int, PreviousMap | None], Points]
# (embeddings [M, H], the reference frame, settings) → [M, D]
Onto = Callable[[Array, PreviousMap, Mapping[str, Value]], Points]


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection: its computation and its presentation in forms.

    Attributes:
        place: position among the entries of its package.
        onto: places other frames on the map of a reference frame; None if there is no mode "once".
        caution: a short sentence, shown with every map, on what the map cannot show; empty for none.
        linear: whether a point is a linear function of its normalised vector.
        quick: whether every frame is fitted; otherwise only keyframes are, and the others are interpolated.
        library: the library that computes it, for comparison; empty for our own projections.
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
        """The available modes, the default first."""
        return ("each",) if self.onto is None else ("each", "once")


# Extensions add a projection with `PROJECTIONS.register`.
PROJECTIONS: Registry[Projection] = Registry("method")


def stable_projections() -> dict[str, Projection]:
    """Return our own projections, whose maps are stable."""
    return {name: entry for name, entry in PROJECTIONS.items() if not entry.library}


def library_projections() -> dict[str, Projection]:
    """Return the projections of libraries, by the name of our own projection of the same kind."""
    return {entry.same_as: entry for entry in PROJECTIONS.values() if entry.library}


@dataclass(frozen=True, slots=True)
class MapSpec:
    """Specification of the maps of a run's frames.

    Attributes:
        dims: 2 or 3.
        mode: "each" fits the frames one after another, "once" fits the last one and places the others on its map.
        parameters: (name, value) pairs; missing ones get their defaults. JSON gives a mapping.
    Raises: ConfigError for an invalid field.
    """

    method: str = "pca"
    dims: int = 2
    mode: Mode = "each"
    parameters: tuple[tuple[str, Value], ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        entry = PROJECTIONS.entry(self.method)
        if isinstance(self.dims, bool) or self.dims not in DIMS:
            raise ConfigError("dims", self.dims, "give 2 or 3.")
        if self.mode not in entry.modes:
            modes = join_list(entry.modes)
            raise ConfigError("mode", self.mode, "{map} has {modes}.", map=entry.label, modes=modes)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed <= MOST_SEED:
            raise ConfigError("seed", self.seed, "give a whole number from 0 to {most}.", most=MOST_SEED)
        known = check_parameters(entry.label, entry.parameters, dict(self.parameters), ())
        object.__setattr__(self, "parameters", tuple((p.name, known[p.name]) for p in entry.parameters))

    @property
    def entry(self) -> Projection:
        return PROJECTIONS.entry(self.method)

    @property
    def settings(self) -> dict[str, Value]:
        """Parameters by name."""
        return dict(self.parameters)

    @property
    def key(self) -> str:
        """A file name such as "umap-2d-each-1f0c…": equal for equal specs, and different for every VERSION."""
        text = json.dumps([VERSION, self.as_dict()], sort_keys=True)
        return f"{self.method}-{self.dims}d-{self.mode}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, of which `MapSpec(**fields)` makes the spec again, also after a round trip by JSON."""
        return asdict(self) | {"parameters": self.settings}
