"""Requests that a run answers between two steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Controls(Protocol):
    """Read by the loop between two steps."""

    def stop_requested(self) -> bool:
        """True once the run should end with a checkpoint."""
        ...

    def take_turns(self) -> Sequence[tuple[str, float]]:
        """Knob turns (name, value) that came since the last call, oldest first."""
        ...


class NoControls:
    """No requests."""

    def stop_requested(self) -> bool:
        return False

    def take_turns(self) -> Sequence[tuple[str, float]]:
        return ()
