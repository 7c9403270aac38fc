"""Engine for a Ray cluster, with the resources that runs request and nodes offer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from core.config import RunConfig
from core.config.sections import ResourcesConfig
from core.messages import Message
from core.settings import settings
from core.store.work import LOADING
from core.tasks import TaskData
from core.workers.engine import Engine
from core.workers.job_kinds import CLUSTER

# Tolerance for fractional requests, which users write with few digits.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Resources:
    """Cores and GPUs that a run requests or a node has."""

    cpus: float
    gpus: float

    def holds(self, asked: Resources) -> bool:
        """Return True if these resources cover a request."""
        return self.cpus + TOLERANCE >= asked.cpus and self.gpus + TOLERANCE >= asked.gpus

    @property
    def text(self) -> Message:
        cores = Message("{cpus} CPU core", "{cpus} CPU cores", count=1 if self.cpus == 1 else 2, cpus=f"{self.cpus:g}")
        if not self.gpus:
            return cores
        gpus = Message("{gpus} GPU", "{gpus} GPUs", count=1 if self.gpus == 1 else 2, gpus=f"{self.gpus:g}")
        return Message("{cores} and {gpus}", cores=cores, gpus=gpus)


class RayEngine(Engine):
    """Executes runs as Ray tasks. The bridge, a process on this machine, claims them and submits them."""

    def prepared(self, draft: RunConfig) -> tuple[RunConfig, TaskData]:
        asked = requested(draft)
        resources = ResourcesConfig(cpus=asked.cpus, gpus=asked.gpus)
        return super().prepared(draft.model_copy(update={"resources": resources}))

    def retire_outdated(self) -> None:
        bridge = self.store.warm_process(CLUSTER)
        if bridge is not None and bridge.doing not in (LOADING, identity_of_settings()):
            self.store.name_warm_process(CLUSTER, None)  # it finishes its runs, but starts no more

    def dispatch(self) -> None:
        """Start the bridge if a run is queued. Raises: EngineError if no process can be started."""
        if self.store.has_queued():
            self._ensure_process()

    def _ensure_process(self) -> None:
        self.retire_outdated()
        self._jobs.warm_up(CLUSTER)


def identity_of_settings() -> str:
    """Return a hash of the settings."""
    return hashlib.sha256(settings().model_dump_json().encode()).hexdigest()[:16]


def requested(draft: RunConfig) -> Resources:
    """Return the resources that a run requests, with the settings as defaults."""
    known, asked = settings(), draft.resources
    return Resources(
        cpus=known.ray_cpus if asked.cpus is None else asked.cpus,
        gpus=known.ray_gpus if asked.gpus is None else asked.gpus,
    )


def fits(nodes: Mapping[str, Resources], running: Iterable[tuple[str | None, Resources]], asked: Resources) -> bool:
    """Return True if a node has enough free resources for another run.

    Args:
        nodes: total resources of each node, by id.
        running: node and resources of each submitted run; the node is None until the run arrives. Such runs are
            assumed to go to the first node where they fit, largest first.
    """
    free = dict(nodes)
    for node, taken in sorted(running, key=lambda run: (run[0] is None, -run[1].gpus, -run[1].cpus)):
        place = next((name for name, left in free.items() if left.holds(taken)), None) if node is None else node
        if place is None:
            return False  # this run is already waiting for a node
        if place in free:
            free[place] = Resources(free[place].cpus - taken.cpus, free[place].gpus - taken.gpus)
    return any(left.holds(asked) for left in free.values())


def refusal(nodes: Collection[Resources], asked: Resources) -> Message | None:
    """Return the reason why no node can ever hold a request, in one sentence; None if one can."""
    if any(node.holds(asked) for node in nodes):
        return None
    has = tuple(node.text for node in sorted(set(nodes), key=lambda one: (one.cpus, one.gpus)))
    return Message(
        "The run requests {asked}, but no node of the cluster has as much (available: {has}): request less.",
        asked=asked.text,
        has=has or Message("no node"),
    )
