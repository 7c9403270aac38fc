"""Engines carry runs out: submitting, steering and resuming are the same everywhere, starting them is not.

On this machine one run at a time per GPU goes on, or one on a machine without; the others wait in a queue.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence

from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import ConfigError, EngineError, RunNotFoundError
from core.messages import Message
from core.settings import LOCAL, PREFIX, settings
from core.store import Status, Store
from core.store.liveness import liveness_of
from core.store.work import LOADING, RUNS, Claim
from core.tasks import TaskData
from core.workers import machine
from core.workers.job_kinds import HAS_FORK
from core.workers.jobs import Jobs
from core.workers.limits import check_paths, check_waiting, most_of_visitor
from core.workers.memory import check_memory
from core.workers.processes import spawn
from core.workers.run_rows import TaskSource, keep_rows


class Engine(ABC):
    """Submits, starts and steers runs of one store, to which whoever carries a run out reports its events.

    Any process may have one: a server, the command line, a worker that has ended. A run is claimed in the store, so
    two of them never start it twice.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @abstractmethod
    def warm_up(self) -> None:
        """Have the next run start sooner; returns without waiting."""

    @abstractmethod
    def dispatch(self) -> None:
        """Start queued runs as long as there is room. Cheap when nothing waits."""

    def submit(self, draft: RunConfig, owner: str | None = None) -> str:
        """Check and complete a draft, queue it, and start it if there is room; returns the run's id.

        Args:
            owner: the visitor whose run it is, on a shared server.
        Raises: ConfigError, TaskError, EncoderError, EngineError or StoreError; then nothing was created.
        """
        check_waiting(self.store, owner)
        run_id = self.queue(*self.prepared(draft), owner=owner)
        self.dispatch()
        return run_id

    def prepared(self, draft: RunConfig) -> tuple[RunConfig, TaskData]:
        """A draft as a run here would have it, with every default filled in, and its rows; nothing is created.

        Raises: ConfigError, TaskError or EncoderError.
        """
        check_paths(draft)
        self._check_start(draft)
        config, data = prepare(
            draft,
            gpu=machine.has_gpu(),
            bfloat16=machine.has_bfloat16(draft.device),
            load=TaskSource(self.store.folder),
        )
        check_memory(config, data)
        return config, data

    def _check_start(self, draft: RunConfig) -> None:
        """Raises: ConfigError for a run that cannot be started from."""
        if draft.start is None:
            return
        try:
            source = self.store.run(draft.start)
        except RunNotFoundError:
            raise ConfigError(
                "start", draft.start, "there is no such run; give the id of one that has finished."
            ) from None
        if source.config.encoder.id != draft.encoder.id:
            raise ConfigError(
                "start",
                draft.start,
                "{title} has the encoder {encoder}; give a run with {wanted}.",
                title=source.title,
                encoder=source.config.encoder.id,
                wanted=draft.encoder.id,
            )

    def queue(
        self,
        config: RunConfig,
        data: TaskData,
        cell: tuple[str, int, int] | None = None,
        owner: str | None = None,
    ) -> str:
        """Queue a prepared run; returns its id. `dispatch` starts it.

        Args:
            cell, owner: as `Store.create` takes them.
        Raises: TaskError or StoreError; then nothing was created.
        """
        keep_rows(self.store.folder, data)
        return self.store.create(config, cell, owner)

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


def chosen_engine(store: Store) -> Engine:
    """This machine's processes, or a Ray cluster. Raises: ConfigError for settings that cannot be followed."""
    address = settings().engine
    if address == LOCAL:
        return LocalEngine(store)
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("SCL_ENGINE", address, "install Ray (pip install -r requirements-ray.txt), or give local.")
    from core.workers.cluster.ray_engine import RayEngine

    return RayEngine(store)
