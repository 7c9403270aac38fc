"""Recording of a run's events in the store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from core.errors import EngineError, StoreError, TrainingError
from core.events import (
    VALIDATION,
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
from core.store import ExperimentTable, Status, Store
from core.store.attempt import Attempt, as_stored
from core.workers.early_stopping import reason_to_end
from core.workers.processes import log

# The duration of a step is not repeated.
NO_TIME = {"step_s": 0.0}


class Recorder:
    """Writes events to the store, and aligns each frame's map with the previous one."""

    def __init__(self, store: Store, attempt: Attempt, log: Callable[[str], None] = log) -> None:
        """Args: log: appends a line to the run's log."""
        self._store, self._attempt, self._log = store, attempt, log
        self._frames: set[int] = set()
        self._last_map: Points | None = None
        self._repeated: dict[int, dict[str, float]] = {}
        self._may_end_early = store.run(attempt.run_id).of_experiment

    def record(self, event: Event) -> None:
        attempt = self._attempt
        match event:
            case Started():
                attempt.record_start(event)
                self._frames = set(self._store.frame_steps(attempt.run_id))
                self._last_map = self._newest_map()
                self._repeated = self._steps_to_repeat(event.step)
            case Tokens():
                attempt.tokens(event)
            case Step():
                self._check_repeated(event)
                attempt.steps([event])
            case Frame() if event.step not in self._frames:  # a resumed run yields its last frame again
                self._last_map = pca_map(event.embeddings, self._last_map)
                attempt.frame(event, self._last_map)
                self._frames.add(event.step)
            case Evaluation():
                attempt.evaluation(event.step, event.split, event.values)
                if event.split == VALIDATION and self._may_end_early:
                    self._end_if_poor(event.step)
            case Predictions():
                attempt.predictions(event)
            case KnobTurned():
                attempt.record_knob_turn(event.step, event.name, event.value)
            case Checkpointed():
                attempt.record_checkpoint(event.step)
            case TurnRefused():
                self._log(str(event.message))
                attempt.record_refused_turn(event.name, event.value, event.message)
            case Notice():
                self._log(str(event.message))
                attempt.notice(event.message)
            case Finished():
                attempt.record_peak_memory(event.values.get("peak_memory"))
                attempt.end(Status(event.status))

    def _steps_to_repeat(self, begin: int) -> dict[int, dict[str, float]]:
        """Return the parent's values of the steps that a branch repeats; none if the parent was deleted."""
        point = self._store.run(self._attempt.run_id).config.branch
        if point is None or point.step <= begin:
            return {}
        steps = self._store.steps(point.run, after=begin, most=point.step - begin)
        return {step.step: {**step.values, **NO_TIME} for step in steps}

    def _check_repeated(self, event: Step) -> None:
        """Compare a step that a branch repeats. Raises: TrainingError if it differs from the parent's in any bit."""
        values = {**as_stored(event.values), **NO_TIME}
        if self._repeated.get(event.step, values) != values:
            raise TrainingError(
                "Step {step} differs from that of the run it repeats, which other code or another machine trained: "
                "train that run again here, then branch from it.",
                step=event.step,
            )

    def _end_if_poor(self, step: int) -> None:
        """Stop the run if its experiment stops runs early and others are better."""
        run_id = self._attempt.run_id
        reason = reason_to_end(self._store, run_id, step, self._store.run(run_id).steps)
        if reason is not None:
            self._log(str(reason))
            self._attempt.notice(reason)
            ExperimentTable(self._store.folder).end_early(run_id)
            with contextlib.suppress(EngineError):  # it has just ended
                self._store.send(run_id, "stop")

    def _newest_map(self) -> Points | None:
        """Return the map of the newest readable frame; None if there is none."""
        for step in sorted(self._frames, reverse=True):
            try:
                return self._store.map_points(self._attempt.run_id, step)
            except StoreError as error:
                self._log(str(error))
        return None
