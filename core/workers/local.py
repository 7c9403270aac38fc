"""Runs on this machine: one at a time per GPU, or one on a machine without; the others wait in a queue."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from core.errors import EngineError
from core.messages import Message
from core.settings import PREFIX
from core.store import Status, Store
from core.store.liveness import liveness_of
from core.store.work import LOADING, RUNS, Claim
from core.workers import machine
from core.workers.engine import Engine
from core.workers.job_kinds import HAS_FORK
from core.workers.jobs import Jobs
from core.workers.limits import most_of_visitor
from core.workers.processes import spawn


class LocalEngine(Engine):
    """Runs in processes of this machine, each in a session of its own, which writes into the run's log.

    Where the warm process of runs lives (`core.workers.warm.RunStarter`), it forks one in milliseconds; a new
    interpreter needs seconds to import torch.
    """

    def __init__(self, store: Store, *, slots: Sequence[int] | None = None, forks: bool = HAS_FORK) -> None:
        """`forks`: whether to make use of a warm process."""
        super().__init__(store)
        self._slots = machine.slots() if slots is None else slots
        self._forks = forks
        self._jobs = Jobs(store.folder)

    def warm_up(self) -> None:
        """Have a warm process ready, so that the next run starts at once; returns without waiting.

        Without one a run starts all the same, some seconds later, so trouble with it is only logged.
        """
        try:
            if self._forks:
                self._jobs.warm_up(RUNS)
        except EngineError as error:
            logging.getLogger(__name__).warning("no warm process: %s", error)

    def dispatch(self) -> None:
        if self._forks and self.store.awaiting(RUNS):
            self.warm_up()  # the process that is to begin them may have died
        while self.store.has_queued() and self._start_one():
            pass

    def _start_one(self) -> bool:
        # The warm process may be older than the settings that count now.
        known = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
        with self.store.transaction():
            warm = self.store.warm_process(RUNS) if self._forks else None
            if warm is not None and (not warm.alive or (warm.doing == LOADING and warm.failed_starts)):
                warm = None
            holder = warm.worker if warm else liveness_of()
            claim = self.store.claim_next(self._slots, holder, most_of_visitor(), request=known if warm else None)
        if claim is not None and warm is None:
            self._spawn(claim)
        return claim is not None

    def _spawn(self, claim: Claim) -> None:
        given = map(str, (self.store.folder, *claim))
        try:
            log_path = self.store.log_path(claim.id)
            log_path.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "core.workers.run_worker", *given]
            worker = spawn(command, log_path, machine.visible_gpus())
        except OSError as error:
            message = Message(
                "No worker could be started ({reason}): close programs and try again.", reason=error.strerror
            )
            self.store.attempt(claim.id, claim.attempt).end(Status.FAILED, message)
            return
        # We may be a worker that ended itself and is gone before the new one has imported torch.
        self.store.hand_over(claim, worker)
