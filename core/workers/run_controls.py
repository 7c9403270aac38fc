"""Connection of a worker to the store: sends heartbeats and receives controls, however long a step takes."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from core.errors import EngineError, StaleAttemptError, StoreError
from core.messages import Message
from core.settings import settings
from core.store import Store
from core.store.attempt import Attempt
from core.store.liveness import HEARTBEAT_S
from core.workers.processes import log

POLL_S = 0.2


@contextmanager
def listening(
    store: Store,
    attempt: Attempt,
    apply: Callable[[str, str | None, float | None], None],
    replaced: Callable[[], None],
) -> Iterator[None]:
    """Poll for the controls of an attempt and send its heartbeats, in a thread, within the block.

    Args:
        apply: called with the kind, name and value of each control.
        replaced: called when a later attempt has replaced this one, whose writes the store then refuses.
    """
    closed = threading.Event()

    def listen() -> None:
        next_beat, heard, paused_at = 0.0, 0, math.inf
        while not closed.wait(POLL_S):
            try:
                for control in attempt.take_controls(after=heard):
                    heard = control.number
                    apply(control.kind, control.name, control.value)
                    if control.kind != "turn":
                        paused_at = time.monotonic() if control.kind == "pause" else math.inf
                if paused_at < math.inf and _gave_up_slot(store, attempt, time.monotonic() - paused_at):
                    paused_at = math.inf
                if time.monotonic() >= next_beat:
                    attempt.heartbeat()
                    next_beat = time.monotonic() + HEARTBEAT_S
            except StaleAttemptError:
                replaced()
                break
            except StoreError as error:
                log(str(error))
        store.close()

    thread = threading.Thread(target=listen, name="link", daemon=True)
    thread.start()
    try:
        yield
    finally:
        closed.set()
        thread.join(timeout=10)


def _gave_up_slot(store: Store, attempt: Attempt, paused_s: float) -> bool:
    """Stop the run if it has been paused too long while another run is queued. Returns: True if stopped."""
    minutes = settings().paused_minutes
    if paused_s < 60 * minutes or not store.has_queued():
        return False
    with suppress(EngineError):  # it has just ended
        store.send(attempt.run_id, "stop")
        attempt.notice(
            Message(
                "Paused for {minutes:g} minutes while other runs were queued, so it was stopped. Resume it to "
                "continue from its last step.",
                minutes=minutes,
            )
        )
    return True


class ControlState:
    """State of a run's controls. It implements the `Controls` of the training loop."""

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

    def is_paused(self) -> bool:
        return not self._awake.is_set()

    def wait_while_paused(self) -> None:
        self._awake.wait()

    def ask_stop(self) -> None:
        self._stop.set()
        self._awake.set()

    def apply(self, kind: str, name: str | None, value: float | None) -> None:
        """Apply a control, given by its kind, name and value."""
        if kind == "stop":
            self.ask_stop()
        elif kind == "pause":
            self._awake.clear()
        elif kind == "resume":
            self._awake.set()
        elif kind == "turn" and name is not None and value is not None:
            with self._lock:
                self._turns.append((name, value))
        # A stop overrides a later pause.
        if self._stop.is_set():
            self._awake.set()


@contextmanager
def controlled(store: Store, attempts: Sequence[Attempt]) -> Iterator[list[ControlState]]:
    """Listen for controls of attempts that train in this process. SIGTERM stops all of them, which writes checkpoints.

    Yields: the state of each attempt's controls.
    """
    states = [ControlState() for _ in attempts]

    def stop_all(*_: object) -> None:
        for state in states:
            state.ask_stop()

    before = signal.signal(signal.SIGTERM, stop_all)
    try:
        with ExitStack() as stack:
            for attempt, state in zip(attempts, states, strict=True):
                # After a later attempt has begun, the store refuses the loop's next write, which ends the training.
                stack.enter_context(listening(store, attempt, state.apply, state.ask_stop))
            yield states
    finally:
        signal.signal(signal.SIGTERM, before)
