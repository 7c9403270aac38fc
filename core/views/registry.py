"""Where a further view of a text comes from: the views of this folder, readable without importing torch."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from core.errors import ConfigError
from core.views.entry import ViewEntry

# Every view that there is, by name, in the order of lists. A view from outside is added by `register`.
VIEWS: dict[str, ViewEntry] = {}


def register(entry: ViewEntry) -> None:
    """Add a view. Raises: ValueError where there is one of that name."""
    if entry.name in VIEWS:
        raise ValueError(f"name = {entry.name!r}: there is such a view, expected a name of its own")
    VIEWS[entry.name] = entry
    for name in sorted(VIEWS, key=lambda name: VIEWS[name].place):
        VIEWS[name] = VIEWS.pop(name)


def view_entry(name: object, field: str = "view") -> ViewEntry:
    """The entry of a view.

    Raises: ConfigError naming what exists.
    """
    if not isinstance(name, str) or name not in VIEWS:
        raise ConfigError(field, name, f"choose one of {', '.join(VIEWS)}.")
    return VIEWS[name]


def _in_this_folder() -> Iterator[ViewEntry]:
    """The entries of all modules here that have some."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if f"core.views.{module.name}" != __name__:
            yield from getattr(import_module(f"core.views.{module.name}"), "ENTRIES", ())


for _entry in _in_this_folder():
    register(_entry)
