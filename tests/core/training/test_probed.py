"""Frames and test scores of runs with an untrained classifier come from a linear probe, recomputed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from core.advice.score_source import PROBE_ROWS
from core.config.objective import ObjectiveConfig
from core.events import Notice, Started
from core.tasks import TaskData
from core.training.checkpoints import Checkpoints, load_learned
from core.training.encode import encode
from core.training.untrained import VectorCache
from tests.core.training.made import (
    CPU,
    Draft,
    additive,
    evaluations,
    frames_of,
    load_run_encoder,
    run_draft,
    run_in_attempts,
)

PROBE = {"probe": {"size": 10, "train_size": 4, "frame_steps": [4]}}
CONTRAST = ObjectiveConfig().with_knob("lambda", 1.0).model_dump(mode="json")
TWO_PHASES: dict[str, Any] = {
    "phases": [
        {"steps": 4, "batch_size": 8, "objective": additive({"loss": loss})} for loss in ("supcon", "cross_entropy")
    ]
}


def expected(data: TaskData, encoder: Any, tokenizer: Any, split: str) -> tuple[np.ndarray, float]:
    """Return log-probabilities of a logistic regression fitted on every training row, and its accuracy."""

    def vectors(texts: Any) -> np.ndarray:
        return encode(encoder, tokenizer, texts, autocast=CPU.autocast).pooled.numpy()

    assert len(data.train) <= PROBE_ROWS
    rows = getattr(data, split)
    probe = LogisticRegression(C=1.0, max_iter=2000).fit(vectors(data.train.inputs), data.train.labels)
    log_p = probe.predict_log_proba(vectors(rows.inputs))
    return log_p, float((log_p.argmax(1) == np.array(rows.labels)).mean())


@pytest.mark.parametrize("cached", [False, True])
def test_frames_of_contrast_alone_hold_a_linear_probe(draft: Draft, tmp_path: Path, cached: bool) -> None:
    made = draft(objective=CONTRAST, optimiser={"learning_rate": 5e-3}, more=PROBE)
    cache: VectorCache = {}
    if cached:
        run_draft(made, cache=cache)
    config, data, events = run_draft(made, checkpoints=Checkpoints(tmp_path), cache=cache)
    frames = frames_of(events)
    validation = evaluations(events, "validation")
    first, last = load_run_encoder(config, data), load_run_encoder(config, data)
    load_learned(Checkpoints(tmp_path).path, last[0])
    for step, model in ((0, first), (8, last)):
        log_p, _ = expected(data, *model, "validation")
        np.testing.assert_allclose(frames[step].logits[:10], log_p, atol=1e-2)
        right = frames[step].logits[:10].argmax(1) == np.array(data.validation.labels)
        assert validation[step].values["accuracy"] == right.mean()
        assert validation[step].probe_rows == len(data.train)
        assert frames[step].logits.shape == (14, 2)
        assert frames[step].embeddings.shape == (14, 16)


def test_the_test_score_is_that_of_a_probe_of_the_last_vectors(draft: Draft, tmp_path: Path) -> None:
    made = draft(objective=CONTRAST, optimiser={"learning_rate": 2e-2})
    config, data, events = run_draft(made, checkpoints=Checkpoints(tmp_path))
    encoder, tokenizer = load_run_encoder(config, data)
    load_learned(Checkpoints(tmp_path).path, encoder)
    (test,) = evaluations(events, "test").values()
    assert test.probe_rows == len(data.train)
    log_p, _ = expected(data, encoder, tokenizer, "test")
    # For a text between two classes the last bits decide. They depend on the other texts in its batch.
    between = np.abs(log_p[:, 0] - log_p[:, 1]) < 5e-5
    assert between.mean() < 0.25
    right = log_p.argmax(1) == np.array(data.test.labels)
    assert (right & ~between).mean() <= test.values["accuracy"] <= (right | between).mean()


def test_a_probe_is_fitted_on_at_most_that_many_rows(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.training.probe.PROBE_ROWS", 30)
    _, _, events = run_draft(draft(objective=CONTRAST, more=PROBE))
    assert {e.probe_rows for e in evaluations(events, "validation").values()} == {30}
    more = {"probe": {"size": 10, "train_size": 40, "frame_steps": [4]}}
    _, _, events = run_draft(draft(objective=CONTRAST, more=more))
    assert {e.probe_rows for e in evaluations(events, "validation").values()} == {40}  # as many as on the map


def test_a_classifier_that_learns_is_scored_itself(draft: Draft) -> None:
    _, _, events = run_draft(draft(more=PROBE))
    assert {e.probe_rows for e in evaluations(events, "validation").values()} == {None}
    assert evaluations(events, "test")[8].probe_rows is None
    assert not [event for event in events if isinstance(event, Notice)]


def test_two_phases_are_scored_by_the_probe_and_then_by_the_classifier(draft: Draft) -> None:
    more = {"probe": {"size": 10, "train_size": 4, "frame_steps": [4, 5]}} | TWO_PHASES
    _, data, events = run_draft(draft(more=more))
    by = {step: e.probe_rows for step, e in evaluations(events, "validation").items()}
    assert by == {0: len(data.train), 4: len(data.train), 5: None, 8: None}
    assert evaluations(events, "test")[8].probe_rows is None


def test_the_run_says_that_its_classifier_never_learns(draft: Draft) -> None:
    _, _, events = run_draft(draft(objective=CONTRAST))
    notices = [str(event.message) for event in events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "the classifier is not trained" in notices[0]
    _, _, events = run_draft(draft(more=TWO_PHASES))
    assert ["is trained from step 5" in str(e.message) for e in events if isinstance(e, Notice)] == [True]


def test_a_resumed_run_has_the_same_probes(draft: Draft, tmp_path: Path) -> None:
    config, data, events = run_draft(draft(objective=CONTRAST, more=PROBE))
    parts = run_in_attempts(config, data, tmp_path, (3, 4))
    for split in ("validation", "test"):
        assert evaluations(parts, split) == evaluations(events, split)
    assert len([event for event in parts if isinstance(event, Started)]) == 3
