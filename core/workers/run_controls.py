"""A worker's line to the store: beats, and hears what is asked of its run, however long a step takes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence

from core.errors import StaleAttemptError, StoreError
from core.store import Store
from core.store.liveness import HEARTBEAT_S
from core.workers.processes import log

POLL_S = 0.2


class ControlListener:
    """Listens in a thread of its own for as long as the block lasts."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        attempt_number: int,
        apply: Callable[[str, str | None, float | None], None],
        replaced: Callable[[], None],
    ) -> None:
        """Tie the listener to one attempt at a run.

        Args:
            apply: takes a control, as `core.store.Control` has it.
            replaced: called where another attempt has the run: nothing that is done here counts any more.
        """
        self._attempt, self._apply, self._replaced = store.attempt(run_id, attempt_number), apply, replaced
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="link", daemon=True)

    def __enter__(self) -> ControlListener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(timeout=10)

    def _listen(self) -> None:
        attempt = self._attempt
        next_beat, heard = 0.0, 0
        while not self._closed.wait(POLL_S):
            try:
                for control in attempt.take_controls(after=heard):
                    heard = control.number
                    self._apply(control.kind, control.name, control.value)
                if time.monotonic() >= next_beat:
                    attempt.heartbeat()
                    next_beat = time.monotonic() + HEARTBEAT_S
            except StaleAttemptError:
                self._replaced()
                break
            except StoreError as error:
                log(str(error))
        attempt.store.close()


class ControlState:
    """What was asked of a run so far. It is the `Controls` of the training loop."""

    def __init__(self) -> None:
        self._stop, self._awake = threading.Event(), threading.Event()
        self._awake.set()
        self._turns: list[tuple[str, float]] = []
        self._lock = threading.Lock()

    def stop_requested(self) -> bool:
        return self._stop.is_set()

    def take_turns(self) -> Sequence[tuple[str, float]]:
        with self._lock:
            turns, self._turns = self._turns, []
        return turns

    def wait_while_paused(self) -> None:
        self._awake.wait()

    def ask_stop(self) -> None:
        self._stop.set()
        self._awake.set()

    def apply(self, kind: str, name: str | None, value: float | None) -> None:
        """Take a control, as `core.store.Control` has it."""
        if kind == "stop":
            self.ask_stop()
        elif kind == "pause":
            self._awake.clear()
        elif kind == "resume":
            self._awake.set()
        elif kind == "turn" and name is not None and value is not None:
            with self._lock:
                self._turns.append((name, value))
        # A stop that came before a pause holds.
        if self._stop.is_set():
            self._awake.set()


class WorkerControls(ControlListener):
    """The link of a process that trains by itself; a polite kill is a stop, which leaves a checkpoint."""

    def __init__(self, store: Store, run_id: str, attempt_number: int) -> None:
        self.state = ControlState()
        # The loop's next write is refused once another attempt has the run, and ends the worker.
        super().__init__(store, run_id, attempt_number, self.state.apply, self.state.ask_stop)

    def __enter__(self) -> WorkerControls:
        self._previous = signal.signal(signal.SIGTERM, lambda *_: self.state.ask_stop())
        super().__enter__()
        return self

    def __exit__(self, *arguments: object) -> None:
        signal.signal(signal.SIGTERM, self._previous)
        super().__exit__(*arguments)
