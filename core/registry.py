"""Registries of named entries, from the modules of a package or registered by other packages."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from core.errors import ConfigError


class Named(Protocol):
    """An entry of a registry."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


class Registry(dict[str, Entry]):
    """Entries by name, in the order in which they are registered."""

    def __init__(self, kind: str, entries: Iterable[Entry] = ()) -> None:
        """Create a registry.

        Args:
            kind: name of one entry, such as "loss", for messages and as the field of a ConfigError.
        """
        super().__init__()
        self.kind = kind
        for entry in entries:
            self.register(entry)

    def collect(self, package: str) -> None:
        """Register the ENTRIES of every module of a package that defines them, sorted by `place`."""
        modules = pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
        entries = [entry for module in modules for entry in getattr(import_module(module.name), "ENTRIES", ())]
        for entry in sorted(entries, key=attrgetter("place")):
            self.register(entry)

    def register(self, entry: Entry) -> None:
        """Add an entry. Raises: ValueError if the name is taken."""
        if entry.name in self:
            raise ValueError(f"name = {entry.name!r}: a {self.kind} of this name exists, choose another name")
        self[entry.name] = entry

    def entry(self, name: object) -> Entry:
        """Return the entry of this name.

        Raises: ConfigError naming the entries that exist; there is no silent fallback.
        """
        if not isinstance(name, str) or name not in self:
            raise ConfigError(self.kind, name, "choose one of {names}.", names=tuple(self))
        return self[name]


@cache
def load(path: str) -> Any:
    """Return the function that an entry names, such as "core.losses.supcon:supcon_term", importing its module.

    Raises: ImportError or AttributeError if there is none.
    """
    return pkgutil.resolve_name(path)
