"""A complete fine-tune: training, then storing the weights before the run reports that it has finished."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.config import RunConfig
from core.errors import StaleAttemptError, TrainingError
from core.events import Checkpointed, Event, Finished, Frame, Notice, Started
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints
from core.training.controls import Controls
from core.training.data_parallel import Ranks
from core.training.half_precision import Predictions, Trained, halve_weights
from core.training.loop import train
from core.training.untrained import VectorCache


def fine_tune(
    config: RunConfig,
    data: TaskData,
    checkpoints: Checkpoints,
    *,
    controls: Controls,
    cache: VectorCache,
    translations: Path | None,
    start: Path | None,
    known: Mapping[int, Predictions],
    log: Callable[[str], None],
    ranks: Ranks | None = None,
) -> Iterator[Event]:
    """Yield the events of `train`, resuming from the checkpoint if there is one.

    Args:
        known: what frames of earlier attempts predict of the probe's validation rows, by step.
        log: takes lines for whoever looks for the cause of an error.
    Raises: as `train`. Where halving goes wrong weights stay whole, and the run is no worse for it.
    """
    watched = _Watched(config, data, dict(known))
    resume, trained = checkpoints.step() is not None, Trained()
    for event in train(
        config,
        data,
        controls=controls,
        checkpoints=checkpoints,
        cache=cache,
        translations=translations,
        start=start,
        resume=resume,
        ranks=ranks,
        trained=trained,
    ):
        watched.see(event)
        if isinstance(event, Finished) and event.status == "finished":
            yield watched.store(checkpoints, trained, log)
        yield event


class _Watched:
    """The predictions of a run's frames that storing its weights in half precision needs."""

    def __init__(self, config: RunConfig, data: TaskData, known: dict[int, Predictions]) -> None:
        self._config, self._data, self._known = config, data, known
        self._steps = {*(config.checkpoint.snapshot_steps or ()), config.steps}
        self._started: Started | None = None

    def see(self, event: Event) -> None:
        if isinstance(event, Started):
            self._started = event
        elif isinstance(event, Frame) and event.step in self._steps and self._started is not None:
            self._known[event.step] = event.logits[: self._started.probe.held_out].argmax(1)

    def store(self, checkpoints: Checkpoints, trained: Trained, log: Callable[[str], None]) -> Checkpointed | Notice:
        assert self._started is not None
        # Frames predict the probe, which is the whole validation split unless that is large.
        known = self._known if self._started.probe.held_out == len(self._data.validation) else {}
        steps, device = self._config.steps, self._started.device
        try:
            for note in halve_weights(checkpoints, self._config, self._data, device, known, trained):
                log(note)
        except StaleAttemptError:
            raise
        except Exception:
            log(traceback.format_exc())
        try:
            if checkpoints.step() != steps:
                checkpoints.save(steps, trained.weights)
        except TrainingError as error:
            return Notice(steps, error.message)
        return Checkpointed(steps)
