"""Engines execute runs. They share submitting, controlling and resuming, and differ in how they start runs.

This machine executes one run at a time per GPU, or one run without a GPU. The others wait in a queue.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

from core.advice.prepare import check_models, prepare
from core.config import RunConfig
from core.config.compare import past_hash
from core.errors import ConfigError, EngineError, RunNotFoundError, StaleAttemptError
from core.messages import Message
from core.settings import LOCAL, PREFIX, settings
from core.store import ExperimentTable, Status, Store
from core.store.liveness import host_name, liveness_of
from core.store.past import copy_past
from core.store.work import LOADING, RUNS, Claim
from core.tasks import TaskData
from core.workers import machine
from core.workers.failures import retry_killed
from core.workers.job_kinds import HAS_FORK
from core.workers.jobs import Jobs
from core.workers.limits import check_paths, check_steps, check_waiting, most_of_visitor
from core.workers.memory import check_memory
from core.workers.processes import START_FAILURE, kill_group, spawn
from core.workers.run_rows import TaskSource, store_rows


class Engine(ABC):
    """Submits, starts and controls the runs of a store. Workers report their events to the store.

    Any process may have an engine: a server, the command line, a worker at its end. A run is claimed in the store, so
    two engines never start it twice.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._jobs = Jobs(store.folder)

    def warm_up(self) -> None:
        """Start the process that begins or sends runs in the background, so that the next run starts sooner.

        Without it a run starts some seconds later, so errors are only logged.
        """
        try:
            self._ensure_process()
        except EngineError as error:
            logging.getLogger(__name__).warning("no warm process: %s", error)

    def _ensure_process(self) -> None:
        """Start the process of `warm_up` unless it is running. Raises: EngineError if it cannot be started."""
        self._jobs.warm_up(RUNS)

    def retire_outdated(self) -> None:  # noqa: B027 - not every engine has such a process
        """Deregister a process that polls the queue with other settings. Call it before runs are queued."""

    @abstractmethod
    def dispatch(self) -> None:
        """Start queued runs while slots are free. Cheap if nothing waits."""

    def submit(self, draft: RunConfig, owner: str | None = None) -> str:
        """Check and complete a draft, queue it, start it if a slot is free, and return the run's id.

        Args:
            owner: the visitor who starts the run, on a shared server.
        Raises: ConfigError, TaskError, EncoderError, EngineError or StoreError.
        """
        run_id = self.queue(*self.prepared(draft), owner=owner)
        self.dispatch()
        return run_id

    def prepared(self, draft: RunConfig) -> tuple[RunConfig, TaskData]:
        """Return a draft with every default for this machine filled in, and its rows. Creates nothing.

        Raises: ConfigError, TaskError or EncoderError.
        """
        check_paths(draft)
        check_models(draft)
        self._check_start(draft)
        config, data = prepare(
            draft,
            gpu=machine.has_gpu(),
            bfloat16=machine.has_bfloat16(draft.device),
            load=TaskSource(self.store.folder),
        )
        self._check_branch(config)
        check_memory(config, data)
        return config, data

    def _check_branch(self, config: RunConfig) -> None:
        """Check the frame at which a prepared branch begins. Raises: ConfigError.

        A branch whose parent is not in this store trains from step 0.
        """
        if (point := config.branch) is None:
            return
        try:
            parent = self.store.run(point.run)
        except RunNotFoundError:
            return
        if parent.config.on_shared_trunk:
            remedy = Message("its cells train together, so one alone cannot go on; train it in full first.")
            raise ConfigError("branch", parent.title, remedy)
        frames = [step for step in self.store.frame_steps(parent.id) if step < parent.steps]
        if point.step not in frames:
            remedy = Message(
                "{title} has no frame at this step, or ends there; choose one of {steps}.",
                title=parent.title,
                steps=tuple(map(str, frames)) or "–",
            )
            raise ConfigError("branch", point.step, remedy)
        if past_hash(config, point.step) != past_hash(parent.effective, point.step):
            remedy = Message("its settings up to step {step} are not those of this run; branch again.", step=point.step)
            raise ConfigError("branch", parent.title, remedy)
        if parent.adopted:
            remedy = Message("it was trained on another machine, so its steps cannot be repeated here; train it here.")
            raise ConfigError("branch", parent.title, remedy)

    def _check_start(self, draft: RunConfig) -> None:
        """Check the run that a draft starts from. Raises: ConfigError if it is missing or has another encoder."""
        if draft.start is None:
            return
        try:
            source = self.store.run(draft.start)
        except RunNotFoundError:
            raise ConfigError("start", draft.start, "there is no such run; give the id of a finished run.") from None
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
        """Queue a prepared run and return its id. `dispatch` starts it.

        Args:
            cell, owner: see `Store.create`.
        Raises: ConfigError or EngineError if the owner exceeds a limit or the cell's experiment was stopped;
            TaskError or StoreError. No run was created then.
        """
        check_steps(config, owner)
        store_rows(self.store.folder, data)
        self.retire_outdated()
        with self.store.transaction():
            if cell is None:
                check_waiting(self.store, owner)
            elif not ExperimentTable(self.store.folder).is_wanted(cell[0]):
                raise EngineError("The experiment was stopped.")
            run_id = self.store.create(config, cell, owner)
            if config.branch is not None:
                copy_past(self.store, config.branch, run_id)
            return run_id

    def stop(self, run_id: str) -> None:
        """Ask a run to end with a checkpoint; kill a worker that does not respond.

        Raises: EngineError if it has ended.
        """
        self.store.send(run_id, "stop")
        run, worker = self.store.run(run_id), self.store.worker_of(run_id)
        if run.responding or worker is None or worker.host != host_name():
            return
        kill_group(worker.pid)
        with suppress(StaleAttemptError):  # it has ended after all
            self.store.attempt(run_id, run.attempt).end(
                Status.STOPPED,
                Message("The worker did not respond, so it was ended. Resume continues from the last checkpoint."),
            )

    def pause(self, run_id: str) -> None:
        self.store.send(run_id, "pause")

    def unpause(self, run_id: str) -> None:
        self.store.send(run_id, "resume")

    def turn(self, run_id: str, name: str, value: float) -> None:
        """Turn a knob; the next step uses it. Raises: ConfigError for a value out of bounds."""
        self.store.send(run_id, "turn", name, value)

    def resume(self, run_id: str) -> None:
        """Requeue a stopped, failed or interrupted run, from its checkpoint.

        Raises: EngineError for any other run, or if its owner has too many queued runs.
        """
        self.retire_outdated()
        with self.store.transaction():
            run = self.store.run(run_id)
            if not run.of_experiment:
                check_waiting(self.store, run.owner)
            self.store.requeue(run_id)
        self.dispatch()


class LocalEngine(Engine):
    """Executes runs in processes of this machine. Each has a separate session and writes to the run's log.

    The warm process of runs (`core.workers.warm.RunStarter`), if alive, forks one in milliseconds. A new interpreter
    needs seconds to import torch.
    """

    def __init__(self, store: Store, *, slots: Sequence[int] | None = None, forks: bool = HAS_FORK) -> None:
        """Create an engine. Args: slots: by default one per GPU; forks: True to use a warm process."""
        super().__init__(store)
        self._slots = machine.slots() if slots is None else slots
        self._forks = forks

    def warm_up(self) -> None:
        if self._forks:
            super().warm_up()

    def dispatch(self) -> None:
        retry_killed(self.store)
        if self._forks and self.store.find_pending_ids(RUNS):
            self.warm_up()  # the warm process that holds them may have died
        # The warm process may have been started with older settings.
        known = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
        while self.store.has_queued():
            with self.store.transaction():
                warm = self.store.warm_process(RUNS) if self._forks else None
                if warm is not None and (not warm.alive or (warm.doing == LOADING and warm.failed_starts)):
                    warm = None
                holder = warm.worker if warm else liveness_of()
                claim = self.store.claim_next(self._slots, holder, most_of_visitor(), request=known if warm else None)
            if claim is None:
                return
            if warm is None:
                self._spawn(claim)

    def _spawn(self, claim: Claim) -> None:
        given = map(str, (self.store.folder, *claim))
        try:
            log_path = self.store.log_path(claim.id)
            log_path.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "core.workers.run_worker", *given]
            worker = spawn(command, log_path, machine.visible_gpus())
        except OSError as error:
            failure = START_FAILURE.fill(reason=error.strerror)
            self.store.attempt(claim.id, claim.attempt).end(Status.FAILED, failure)
            return
        # This process may be a worker that exits before the new one has imported torch.
        self.store.hand_over(claim, worker)


def build_engine(store: Store) -> Engine:
    """Return the engine of the settings: this machine or a Ray cluster. Raises: ConfigError for invalid ones."""
    address = settings().engine
    if address == LOCAL:
        return LocalEngine(store)
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("SCL_ENGINE", address, "install Ray (pip install -r requirements-ray.txt), or give local.")
    from core.workers.cluster.ray_engine import RayEngine

    return RayEngine(store)
