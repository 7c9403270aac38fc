"""The specification of a map: everything that determines its coordinates, besides the frames."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import ConfigError
from core.messages import listed
from core.parameters import Value, checked
from core.representation.projections.entry import PROJECTIONS, Mode, Projection

# Raise it with every change that moves a point, so that older maps have a different key.
VERSION = 2
DIMS = (2, 3)
MOST_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A way to draw a run's frames as points.

    Attributes:
        dims: 2 or 3.
        mode: "each" fits the frames one after another, "once" fits the last one and places the others on its map.
        parameters: (name, value) pairs; missing ones get their defaults.
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
            modes = listed(entry.modes)
            raise ConfigError("mode", self.mode, "{map} has {modes}.", map=entry.label, modes=modes)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed <= MOST_SEED:
            raise ConfigError("seed", self.seed, "give a whole number from 0 to {most}.", most=MOST_SEED)
        known = checked(entry.label, entry.parameters, _pairs(self.parameters), ())
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
        """Return the JSON form."""
        return {
            "method": self.method,
            "dims": self.dims,
            "mode": self.mode,
            "parameters": self.settings,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> MapSpec:
        """Build a spec from its JSON form; absent fields get their defaults.

        Raises: ConfigError for an unknown field or an invalid value.
        """
        if not isinstance(given, Mapping):
            raise ConfigError("map", given, "give an object with method, dims, mode, parameters and seed.")
        fields = ("method", "dims", "mode", "parameters", "seed")
        unknown = sorted(str(name) for name in given if name not in fields)
        if unknown:
            raise ConfigError(unknown[0], given.get(unknown[0]), "a map takes {fields}.", fields=tuple(fields))
        parameters = given.get("parameters", {})
        if not isinstance(parameters, Mapping):
            raise ConfigError("parameters", parameters, "give an object with names and values.")
        return cls(**{**given, "parameters": tuple(parameters.items())})


def _pairs(parameters: tuple[tuple[str, Value], ...]) -> dict[str, Value]:
    try:
        pairs = dict(parameters)
    except (TypeError, ValueError):
        raise ConfigError("parameters", parameters, "give pairs of a name and a value.") from None
    if len(pairs) < len(parameters):
        raise ConfigError("parameters", parameters, "give each name once.")
    return pairs


PROJECTIONS.collect("core.representation.projections")
