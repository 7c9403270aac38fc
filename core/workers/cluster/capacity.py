"""Whether a run finds room on a cluster now, or ever."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from core.messages import Message

# Requests are fractions that people write with a few digits.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Resources:
    """Cores and GPUs that a run asks for, or that a node has."""

    cpus: float
    gpus: float

    def holds(self, asked: Resources) -> bool:
        """Whether there is as much here."""
        return self.cpus + TOLERANCE >= asked.cpus and self.gpus + TOLERANCE >= asked.gpus

    def without(self, taken: Resources) -> Resources:
        return Resources(self.cpus - taken.cpus, self.gpus - taken.gpus)

    @property
    def text(self) -> Message:
        cores = Message("{cpus} CPU core", "{cpus} CPU cores", count=1 if self.cpus == 1 else 2, cpus=f"{self.cpus:g}")
        if not self.gpus:
            return cores
        gpus = Message("{gpus} GPU", "{gpus} GPUs", count=1 if self.gpus == 1 else 2, gpus=f"{self.gpus:g}")
        return Message("{cores} and {gpus}", cores=cores, gpus=gpus)


def fits(nodes: Mapping[str, Resources], running: Iterable[tuple[str | None, Resources]], asked: Resources) -> bool:
    """Whether a node has room for another run.

    Args:
        nodes: what each node has in all, by id.
        running: the runs that were sent, with their nodes; None for one that has not arrived. Those are taken to go
            where they fit, the largest first, until they say where they are.
    """
    free, under_way = dict(nodes), list[Resources]()
    for node, taken in running:
        if node in free:
            free[node] = free[node].without(taken)
        elif node is None:
            under_way.append(taken)
    for taken in sorted(under_way, key=lambda one: (one.gpus, one.cpus), reverse=True):
        place = next((node for node, left in free.items() if left.holds(taken)), None)
        if place is None:
            return False  # one waits already
        free[place] = free[place].without(taken)
    return any(left.holds(asked) for left in free.values())


def refusal(nodes: Collection[Resources], asked: Resources) -> Message | None:
    """Why no node will ever have room, in a sentence; None where one will."""
    if any(node.holds(asked) for node in nodes):
        return None
    has = tuple(node.text for node in sorted(set(nodes), key=lambda one: (one.cpus, one.gpus)))
    return Message(
        "The run asks for {asked}, and no node of the cluster has as much (there: {has}): ask for less.",
        asked=asked.text,
        has=has or Message("no node"),
    )
