"""What can be minimised: the losses of this folder, each described in its own file, readable without importing torch.

Forms, help texts, the equation preview, the command line and the parametrised tests are made from it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from core.errors import ConfigError
from core.losses.entry import LossEntry

# Every loss that there is, by name, in the order of lists. A loss from outside is added by `register`.
LOSSES: dict[str, LossEntry] = {}


def register(entry: LossEntry) -> None:
    """Add a loss. Raises: ValueError where there is one of that name."""
    if entry.name in LOSSES:
        raise ValueError(f"name = {entry.name!r}: there is such a loss, expected a name of its own")
    LOSSES[entry.name] = entry
    for name in sorted(LOSSES, key=lambda name: LOSSES[name].place):
        LOSSES[name] = LOSSES.pop(name)


def loss_entry(name: object, field: str = "loss") -> LossEntry:
    """The entry of a loss.

    Raises: ConfigError naming what exists; nothing falls back silently.
    """
    if not isinstance(name, str) or name not in LOSSES:
        raise ConfigError(field, name, f"choose one of {', '.join(LOSSES)}.")
    return LOSSES[name]


def _in_this_folder() -> Iterator[LossEntry]:
    """The entries of all modules here that have some."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if f"core.losses.{module.name}" != __name__:
            yield from getattr(import_module(f"core.losses.{module.name}"), "ENTRIES", ())


for _entry in _in_this_folder():
    register(_entry)
