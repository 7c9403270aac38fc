"""What carries runs out: submitting, steering and resuming are the same everywhere, starting them is not."""

from __future__ import annotations

from abc import ABC, abstractmethod

from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import ConfigError, RunNotFoundError
from core.store import Status, Store
from core.tasks import TaskData
from core.workers import machine
from core.workers.limits import check_paths, check_waiting
from core.workers.memory import check_memory
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

    def status(self, run_id: str) -> Status:
        """As it is true now. Raises: RunNotFoundError."""
        return self.store.run(run_id).status

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
