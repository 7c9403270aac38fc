"""What a node sends while it carries a run out, besides the run's events."""

from __future__ import annotations

from dataclasses import dataclass

from core.events import Event
from core.messages import Text


@dataclass(frozen=True, slots=True)
class Arrived:
    """A node has the run; `node_id` is Ray's."""

    node_id: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line for the run's log."""

    text: str


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A file of weights in the run's folder, as it is from here on."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The run cannot go on; what a person reads of it, and whether memory was short."""

    message: Text
    of_memory: bool = False


Report = Arrived | Line | WeightFile | Failed | Event
