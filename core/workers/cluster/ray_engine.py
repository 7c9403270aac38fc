"""Runs on the nodes of a Ray cluster, as many at a time as their cores and GPUs carry."""

from __future__ import annotations

import hashlib
import logging

from core.config import RunConfig
from core.config.sections import ResourcesConfig
from core.errors import EngineError
from core.settings import settings
from core.store import Store
from core.store.work import LOADING
from core.tasks import TaskData
from core.workers.engine import Engine
from core.workers.job_kinds import CLUSTER
from core.workers.jobs import Jobs


class RayEngine(Engine):
    """Runs as Ray tasks. One process on this machine, the bridge, claims them and speaks with the cluster."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._jobs = Jobs(store.folder)

    def prepared(self, draft: RunConfig) -> tuple[RunConfig, TaskData]:
        asked = requested(draft)
        return super().prepared(draft.model_copy(update={"resources": asked}))

    def warm_up(self) -> None:
        """Have the bridge connect; without one a run starts some seconds later, so trouble with it is only logged."""
        try:
            self._ensure_bridge()
        except EngineError as error:
            logging.getLogger(__name__).warning("no bridge to the cluster: %s", error)

    def dispatch(self) -> None:
        """Raises: EngineError where no process can be started."""
        if self.store.has_queued():
            self._ensure_bridge()

    def _ensure_bridge(self) -> None:
        bridge = self.store.warm_process(CLUSTER)
        if bridge is not None and bridge.doing not in (LOADING, identity_of_settings()):
            # It leads to another cluster, or knows other limits. It carries its runs to their end, and begins no more.
            self.store.name_warm_process(CLUSTER, None)
        self._jobs.warm_up(CLUSTER)


def identity_of_settings() -> str:
    """The same for the same settings."""
    return hashlib.sha256(settings().model_dump_json().encode()).hexdigest()[:16]


def requested(draft: RunConfig) -> ResourcesConfig:
    """What a run asks the cluster for, the settings filled in."""
    known, asked = settings(), draft.resources
    return ResourcesConfig(
        cpus=known.ray_cpus if asked.cpus is None else asked.cpus,
        gpus=known.ray_gpus if asked.gpus is None else asked.gpus,
    )
