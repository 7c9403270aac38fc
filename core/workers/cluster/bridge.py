"""The bridge, a process on this machine that claims queued runs and sends them to cluster nodes with free resources.

It is independent of the server, so that runs continue while the app restarts.
"""

from __future__ import annotations

import time

from core.config import RunConfig
from core.errors import EngineError
from core.settings import settings
from core.store import Status, Store
from core.store.job_table import JobTable
from core.store.records import Liveness
from core.workers.cluster.ray_cluster import RayCluster
from core.workers.cluster.ray_engine import fits, identity_of_settings, refusal, requested
from core.workers.cluster.remote_run import RemoteRun
from core.workers.limits import most_of_visitor
from core.workers.warm import WarmServer

# Slots of runs on this machine are numbered from 0.
FIRST_SLOT, LAST_SLOT = 1_000, 100_000
RECONNECT_S = 5.0
# Interval between checks of the cluster, whose nodes may change.
LOOK_EVERY_S = 1.0


class Bridge(WarmServer):
    """Server of the queue of runs on a cluster."""

    def __init__(self, table: JobTable, line: str, starter: Liveness | None = None) -> None:
        super().__init__(table, line, starter)
        self._store = Store(table.folder)
        self._address = settings().engine
        self._cluster: RayCluster | None = None
        self._runs: list[RemoteRun] = []
        self._next_try, self._is_unreachable = 0.0, False

    def _load(self) -> None:
        self._connect()
        self._record(identity_of_settings())

    def _has_work(self) -> bool:
        return self._store.has_queued()

    def _turn(self) -> bool:
        if not self._table.exists():
            return False
        living = [run for run in self._runs if run.is_alive()]
        if len(living) < len(self._runs):
            self._next_try = 0.0  # resources are free again
        self._runs = living
        if self._runs:
            self._used_at = time.monotonic()
        if self._has_work() and time.monotonic() >= self._next_try:
            with self._table.transaction():
                if not self._is_current():
                    self._hand_over()
                    return False  # the process ends after its last run
            self._start_runs()
        return bool(self._runs) or self._has_work() or not self._may_exit()

    def _connect(self) -> RayCluster | None:
        """Return the cluster, connecting if necessary; None if it is unreachable.

        The message of queued runs then gives the reason.
        """
        if self._cluster is None:
            try:
                self._cluster = RayCluster(self._address)
                if self._is_unreachable:
                    self._store.set_queue_message(None)
                self._is_unreachable = False
            except EngineError as error:
                self._is_unreachable = True
                self._store.set_queue_message(error.message)
                self._next_try = time.monotonic() + RECONNECT_S
        return self._cluster

    def _start_runs(self) -> None:
        """Start queued runs while nodes have free resources."""
        cluster = self._connect()
        if cluster is None:
            return
        self._next_try = time.monotonic() + LOOK_EVERY_S
        nodes = cluster.nodes()

        def has_room(config: RunConfig, _of_experiment: bool) -> bool:
            asked, running = requested(config), [(run.node_id, run.asked) for run in self._runs]
            return fits(nodes, running, asked) or refusal(nodes.values(), asked) is not None

        slots = range(FIRST_SLOT, LAST_SLOT)
        while claim := self._store.claim_next(slots, self._me, most_of_visitor(), accepts=has_room):
            asked = requested(self._store.run(claim.id).config)
            never = refusal(nodes.values(), asked)
            if never is not None:
                self._store.attempt(claim.id, claim.attempt).end(Status.FAILED, never)
                continue
            run = RemoteRun(self._store, cluster, claim.id, claim.attempt, asked)
            run.start()
            self._runs.append(run)
