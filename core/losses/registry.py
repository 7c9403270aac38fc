"""What can be minimised: the losses of this folder, each described in its own file, readable without importing torch.

Forms, help texts, the equation preview, the command line and the parametrised tests are made from it.
"""

from __future__ import annotations

from core.losses.entry import LossEntry
from core.registry import Registry

# A loss from outside is added by `LOSSES.register`.
LOSSES: Registry[LossEntry] = Registry("loss")


def loss_entry(name: object, field: str = "loss") -> LossEntry:
    """The entry of a loss. Raises: ConfigError naming what exists."""
    return LOSSES.entry(name, field)


LOSSES.collect("core.losses")
