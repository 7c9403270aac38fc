"""The registry of protocols."""

from __future__ import annotations

from core.experiments.protocols.entry import Protocol
from core.registry import Registry

# Plug-ins add a protocol with `PROTOCOLS.register`.
PROTOCOLS: Registry[Protocol] = Registry("protocol")
PROTOCOLS.collect("core.experiments.protocols")
