"""Which protocols there are."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol
from core.registry import Registry

# A protocol from outside is added by `PROTOCOLS.register`.
PROTOCOLS: Registry[Protocol] = Registry("protocol")
PROTOCOLS.collect("core.experiments.protocols")
