"""Which protocols there are."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol
from core.registry import Registry

# A protocol from outside is added by `PROTOCOLS.register`.
PROTOCOLS: Registry[Protocol] = Registry("protocol")


def protocol_entry(name: object, field: str = "protocol") -> Protocol:
    """The entry of a protocol. Raises: ConfigError naming what exists."""
    return PROTOCOLS.entry(name, field)


PROTOCOLS.collect("core.experiments.protocols")
