"""An engine whose runs end at once with given scores, so that an experiment of many runs is fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.config import RunConfig
from core.events import BASELINE, BASELINE_TEST, VALIDATION, Predictions, Started
from core.store import Status, Store
from core.training.scores import classification_scores
from core.workers import Engine
from tests.core.store.test_store import PROBE

LABELS = (0, 1) * 10
# Returns the number of LABELS that a run predicts correctly.
Right = Callable[[RunConfig], int]


def right(config: RunConfig) -> int:
    """Return the number of correct predictions: four more for λ 0.9 than for λ 0.1. Seeds differ."""
    weight = config.phases[0].objective.weight or 0.0
    return 10 + (4 if weight > 0.5 else 0) + config.seed % 3


class InstantEngine(Engine):
    """An engine that finishes runs on dispatch. While `holding` is true, runs stay queued.

    `probe_right` is the number of correct predictions of the linear probe, None for runs without one; `validation`
    returns the number on the validation split, which has no scores without it.
    """

    def __init__(
        self,
        store: Store,
        right: Right = right,
        *,
        predicts: bool = True,
        probe_right: int | None = None,
        validation: Right | None = None,
    ) -> None:
        super().__init__(store)
        self.validation = validation
        self.right, self.predicts, self.probe_right = right, predicts, probe_right
        self.holding = False
        self.carried_out: list[str] = []

    def warm_up(self) -> None:
        """Start nothing in advance."""

    def dispatch(self) -> None:
        while not self.holding and (claim := self.store.claim_next(range(1))) is not None:
            self._carry_out(claim[0], claim[1])

    def _carry_out(self, run_id: str, number: int) -> None:
        self.carried_out.append(run_id)
        attempt, config = self.store.attempt(run_id, number), self.store.run(run_id).config
        attempt.register()
        attempt.record_start(Started(0, config.steps, "cpu", PROBE, {}))
        if self.probe_right is not None:
            probe = classification_scores(logits_of(self.probe_right), LABELS)
            attempt.evaluation(0, BASELINE_TEST, probe | {"train_rows": 8.0})
        logits = logits_of(self.right(config))
        if self.predicts:
            attempt.predictions(Predictions("test", logits, LABELS))
        attempt.evaluation(config.steps, "test", classification_scores(logits, LABELS))
        if self.validation is not None:
            scores = classification_scores(logits_of(self.validation(config)), LABELS)
            attempt.evaluation(config.steps, VALIDATION, scores)
        attempt.end(Status.FINISHED)


class ScoredEngine(InstantEngine):
    """An engine whose runs end at once, with predictions on the validation rows."""

    def _carry_out(self, run_id: str, number: int) -> None:
        attempt, config = self.store.attempt(run_id, number), self.store.run(run_id).config
        attempt.register()
        for split, right in ((VALIDATION, self.right(config)), (BASELINE, 12)):
            attempt.predictions(Predictions(split, logits_of(right), LABELS))
            attempt.evaluation(config.steps, split, classification_scores(logits_of(right), LABELS))
        attempt.end(Status.FINISHED)


def logits_of(right: int, labels: Sequence[int] = LABELS) -> np.ndarray:
    """Return logits [N, 2] that predict the first `right` labels correctly."""
    said = [label if place < right else 1 - label for place, label in enumerate(labels)]
    return np.eye(2, dtype=np.float32)[said] * 2 - 1
