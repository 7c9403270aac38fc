"""Where a further view of a text comes from: the views of this folder, readable without importing torch."""

from __future__ import annotations

from core.registry import Registry
from core.views.entry import ViewEntry

# A view from outside is added by `VIEWS.register`.
VIEWS: Registry[ViewEntry] = Registry("view")


def view_entry(name: object, field: str = "view") -> ViewEntry:
    """The entry of a view. Raises: ConfigError naming what exists."""
    return VIEWS.entry(name, field)


VIEWS.collect("core.views")
