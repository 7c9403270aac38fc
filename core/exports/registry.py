"""The registry of export formats."""

from __future__ import annotations

from core.exports.entry import Export
from core.registry import Registry

EXPORTS: Registry[Export] = Registry("format")
EXPORTS.collect("core.exports")
