"""Runs on this machine: one at a time per GPU, or one on a machine without; the others wait in a queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing

from core.errors import EngineError
from core.store import Status, Store
from core.workers import machine
from core.workers.engine import Engine
from core.workers.job_kinds import HAS_FORK, RUNS
from core.workers.jobs import Jobs
from core.workers.limits import most_of_visitor
from core.workers.starters import SpawnStarter, Starter, WarmStarter


class LocalEngine(Engine):
    """Runs in processes of this machine."""

    def __init__(
        self,
        store: Store,
        *,
        starter: Callable[[Store], Starter] | None = None,
        slots: Sequence[int] | None = None,
    ) -> None:
        super().__init__(store)
        self._starter = starter or _fastest_starter
        self._slots = machine.slots() if slots is None else slots
        self._jobs = Jobs(store.folder)

    def warm_up(self) -> None:
        """Have a warm process ready, so that the next run starts at once; returns without waiting.

        Without one a run starts all the same, some seconds later, so trouble with it is only logged.
        """
        try:
            if HAS_FORK:
                self._jobs.warm_up(RUNS)
        except EngineError as error:
            logging.getLogger(__name__).warning("no warm process: %s", error)

    def dispatch(self) -> None:
        while self.store.has_queued() and self._start_one():
            pass

    def _start_one(self) -> bool:
        with closing(self._starter(self.store)) as starter:
            claim = self.store.claim_next(self._slots, starter.holder(), most_of_visitor())
            if claim is None:
                return False
            try:
                starter.start(self.store, *claim)
            except EngineError:
                self._spawn(*claim)
            return True

    def _spawn(self, run_id: str, attempt: int, slot: int) -> None:
        try:
            SpawnStarter().start(self.store, run_id, attempt, slot)
        except EngineError as error:
            self.store.attempt(run_id, attempt).end(Status.FAILED, error.message)


def _fastest_starter(store: Store) -> Starter:
    return WarmStarter.connected(store) or SpawnStarter()
