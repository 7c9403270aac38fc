"""Two ways to start a worker: a new interpreter, or a fork of a process that has imported everything already."""

from __future__ import annotations

import os
import sys
import time
from typing import Protocol

from core.errors import EngineError, StoreError
from core.settings import PREFIX
from core.store import Liveness, Store
from core.store.job_table import LOADING, JobTable
from core.store.liveness import liveness_of
from core.workers.job_kinds import HAS_FORK, RUN, RUNS
from core.workers.machine import visible_gpus
from core.workers.processes import spawn

LOOK_EVERY_S = 0.05


class Starter(Protocol):
    """Starts workers for claimed runs. The worker lives in a session of its own and writes into the run's log."""

    def holder(self) -> Liveness | None:
        """The process that holds a claimed run until its worker registers; None when it cannot be named."""
        ...

    def start(self, store: Store, run_id: str, attempt: int, slot: int) -> None:
        """Raises: EngineError when no worker can be started."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class SpawnStarter:
    """Executes a new interpreter; it needs seconds to import torch."""

    def holder(self) -> Liveness | None:
        return liveness_of()

    def start(self, store: Store, run_id: str, attempt: int, slot: int) -> None:
        command = [sys.executable, "-m", "core.workers.run_worker", str(store.folder), run_id, str(attempt), str(slot)]
        try:
            log_path = store.log_path(run_id)
            log_path.parent.mkdir(parents=True, exist_ok=True)
            worker = spawn(command, log_path, visible_gpus())
        except OSError as error:
            raise EngineError(
                "No worker could be started ({reason}): close programs and try again.", reason=error.strerror
            ) from error
        # The starter may be a worker that ended itself and is gone before the new one has imported torch.
        if worker is not None:
            store.hand_over(run_id, attempt, worker)

    def close(self) -> None:
        """Nothing is held open."""


class WarmStarter:
    """Puts a run in line for the warm process of runs (`core.workers.warm`), which forks in milliseconds."""

    def __init__(self, table: JobTable, holder: Liveness) -> None:
        self._table, self._holder = table, holder

    @classmethod
    def connected(cls, store: Store) -> WarmStarter | None:
        """A line to the store's warm process of runs, which may still be loading; None when there is none."""
        if not HAS_FORK:
            return None
        table = JobTable(store.folder)
        process = table.warm_process(RUNS)
        return cls(table, process.worker) if process is not None and process.alive else None

    @classmethod
    def wait_until_warm(cls, store: Store, timeout_s: float) -> bool:
        """Wait until the warm process of runs has loaded. Returns: whether it has."""
        table, deadline = JobTable(store.folder), time.monotonic() + timeout_s
        while HAS_FORK and time.monotonic() < deadline:
            process = table.warm_process(RUNS)
            if process is not None and process.alive and process.doing != LOADING:
                return True
            time.sleep(LOOK_EVERY_S)
        return False

    def holder(self) -> Liveness:
        return self._holder

    def start(self, store: Store, run_id: str, attempt: int, slot: int) -> None:
        # The warm process may be older than the settings that count now.
        changed = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
        request = {"run": run_id, "attempt": attempt, "slot": slot, "settings": changed}
        try:
            self._table.add(RUN, request, f"Run {run_id}", RUNS)
        except (OSError, StoreError) as error:
            raise EngineError("The run could not be put in line ({reason}).", reason=error) from error

    def close(self) -> None:
        self._table.close()
