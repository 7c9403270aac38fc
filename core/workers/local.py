"""Runs on this machine: one at a time per GPU, or one on a machine without; the others wait in a queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing

from core.config import RunConfig
from core.errors import EngineError
from core.store import Status, Store
from core.training.prepare import prepare
from core.workers import machine
from core.workers.job_kinds import HAS_FORK, RUNS
from core.workers.jobs import Jobs
from core.workers.run_rows import TaskSource, keep_rows
from core.workers.starters import SpawnStarter, Starter, WarmStarter


class LocalEngine:
    """Submits, starts and steers runs of one store.

    Any process may have one: a server, the command line, a worker that has ended. A run is claimed in the store, so
    two of them never start it twice.
    """

    def __init__(
        self,
        store: Store,
        *,
        starter: Callable[[Store], Starter] | None = None,
        slots: Sequence[int] | None = None,
    ) -> None:
        self.store = store
        self._starter = starter or _fastest_starter
        self._slots = machine.slots() if slots is None else slots

    def warm_up(self) -> None:
        """Have a warm process ready, so that the next run starts at once; returns without waiting.

        Without one a run starts all the same, some seconds later, so trouble with it is only logged.
        """
        try:
            if HAS_FORK:
                Jobs(self.store.folder).warm_up(RUNS)
        except EngineError as error:
            logging.getLogger(__name__).warning("no warm process: %s", error)

    def submit(self, draft: RunConfig) -> str:
        """Check and complete a draft, queue it, and start it if a slot is free; returns the run's id.

        Raises: ConfigError, TaskError, EncoderError or StoreError; then nothing was created.
        """
        config, data = prepare(
            draft,
            gpu=machine.has_gpu(),
            bfloat16=machine.has_bfloat16(draft.device),
            load=TaskSource(self.store.folder),
        )
        keep_rows(self.store.folder, data)
        run_id = self.store.create(config)
        self.dispatch()
        return run_id

    def dispatch(self) -> None:
        """Start queued runs as long as slots are free. Cheap when nothing waits."""
        while self.store.has_queued() and self._start_one():
            pass

    def _start_one(self) -> bool:
        with closing(self._starter(self.store)) as starter:
            claim = self.store.claim_next(self._slots, starter.holder())
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
            self.store.attempt(run_id, attempt).end(Status.FAILED, str(error))

    def stop(self, run_id: str) -> None:
        """Ask a run to end with a checkpoint. Raises: EngineError when it has ended."""
        self.store.send(run_id, "stop")

    def pause(self, run_id: str) -> None:
        self.store.send(run_id, "pause")

    def unpause(self, run_id: str) -> None:
        self.store.send(run_id, "resume")

    def turn(self, run_id: str, name: str, value: float) -> None:
        """Turn a knob; the next step uses it. Raises: ConfigError for a value out of bounds."""
        self.store.send(run_id, "turn", name, value)

    def resume(self, run_id: str) -> None:
        """Queue a stopped, failed or interrupted run again, from its checkpoint. Raises: EngineError."""
        self.store.requeue(run_id)
        self.dispatch()


def _fastest_starter(store: Store) -> Starter:
    return WarmStarter.connected(store) or SpawnStarter()
