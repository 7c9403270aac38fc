"""How vectors become points: the projections of this folder, each described in its own file.

Nothing heavy is imported before one is fitted.
"""

from __future__ import annotations

from core.registry import Registry
from core.representation.projections.entry import Projection

# A projection from outside is added by `PROJECTIONS.register`.
PROJECTIONS: Registry[Projection] = Registry("method")


def projection_entry(name: object) -> Projection:
    """The entry of a projection. Raises: ConfigError naming what exists."""
    return PROJECTIONS.entry(name)


def still() -> dict[str, Projection]:
    """Our own, which hold still."""
    return {name: entry for name, entry in PROJECTIONS.items() if not entry.library}


def by_library() -> dict[str, Projection]:
    """By the name of one of our own, the same as a library lays it out."""
    return {entry.same_as: entry for entry in PROJECTIONS.values() if entry.library}


PROJECTIONS.collect("core.representation.projections")
