"""What a run's events become in the store."""

from __future__ import annotations

from core.errors import StoreError
from core.events import (
    Checkpointed,
    Evaluation,
    Event,
    Finished,
    Frame,
    KnobTurned,
    Notice,
    Predictions,
    Started,
    Step,
    Tokens,
    TurnRefused,
)
from core.representation.projections import Points, pca_map
from core.store import Status, Store
from core.store.store import Attempt
from core.workers.run_log import log


class Recorder:
    """Writes events into the store; draws each frame's map onto the one before."""

    def __init__(self, store: Store, attempt: Attempt) -> None:
        self._store, self._attempt = store, attempt
        self._frames: set[int] = set()
        self._last_map: Points | None = None

    def record(self, event: Event) -> None:
        attempt = self._attempt
        match event:
            case Started():
                attempt.started(event)
                self._frames = set(self._store.frame_steps(attempt.run_id))
                self._last_map = self._newest_map()
            case Tokens():
                attempt.tokens(event)
            case Step():
                attempt.steps([event])
            case Frame() if event.step not in self._frames:  # a resumed run yields its last frame again
                self._last_map = pca_map(event.embeddings, self._last_map)
                attempt.frame(event, self._last_map)
                self._frames.add(event.step)
            case Evaluation():
                attempt.evaluation(event.step, event.split, event.values)
            case Predictions():
                attempt.predictions(event)
            case KnobTurned():
                attempt.knob_turned(event.step, event.name, event.value)
            case Checkpointed():
                attempt.checkpointed(event.step)
            case TurnRefused():
                log(event.message)
                attempt.turn_refused(event.name, event.value, event.message)
            case Notice():
                log(event.message)
                attempt.notice(event.message)
            case Finished():
                attempt.end(Status(event.status))

    def _newest_map(self) -> Points | None:
        """The map of the newest frame that can be read."""
        for step in sorted(self._frames, reverse=True):
            try:
                return self._store.map_points(self._attempt.run_id, step)
            except StoreError as error:
                log(str(error))
        return None
