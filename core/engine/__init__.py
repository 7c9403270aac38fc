"""Where a queued run executes."""

from core.engine.local import LocalEngine

__all__ = ["LocalEngine"]
