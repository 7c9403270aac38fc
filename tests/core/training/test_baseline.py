"""The linear probe as a baseline: its training rows and scores. No step waits for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from core.advice.prepare import prepare
from core.config import RunConfig
from core.events import Evaluation, Event, Step
from core.tasks import TaskData
from core.tasks.batches import make_sampler
from core.training import untrained
from core.training.checkpoints import Checkpoints
from core.training.loop import train
from core.training.untrained import Baseline, VectorCache, learned_rows
from tests.core.training.made import Draft, Script, curve, evaluations, load_run_encoder, preset_phases, run_draft


def scores(events: list[Event], split: str) -> dict[str, float]:
    return evaluations(events, split)[0].values


@torch.no_grad()
def vectors(config: RunConfig, data: TaskData, texts: Any) -> np.ndarray:
    """Encode each text alone with the pre-trained encoder."""
    encoder, tokenizer = load_run_encoder(config, data)
    return np.concatenate([encoder.pooled(tokenizer([text])).numpy() for text in texts])


def test_it_is_a_logistic_regression_on_all_rows_that_the_run_learns_from(draft: Draft) -> None:
    given = draft(steps=30)
    given = given.model_copy(update={"encoder": given.encoder.model_copy(update={"pooling": "mean"})})
    config, data, events = run_draft(given)
    assert learned_rows(config, data.train.labels) == list(range(len(data.train)))
    fitted = LogisticRegression(C=1.0, max_iter=2000).fit(vectors(config, data, data.train.inputs), data.train.labels)
    for split, name in ((data.validation, "baseline"), (data.test, "baseline_test")):
        found = scores(events, name)
        assert found["train_rows"] == len(data.train)
        assert found["rows"] == len(split)
        # Losses, because a random encoder's vectors are nearly equal and rounding decides single predictions.
        log_p = fitted.predict_log_proba(vectors(config, data, split.inputs))
        loss = -log_p[np.arange(len(split)), split.labels].mean()
        assert found["cross_entropy"] == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("sampler", ["random", "class_balanced"])
def test_a_short_run_is_compared_on_the_rows_of_its_batches(draft: Draft, sampler: str) -> None:
    config, data, events = run_draft(draft(steps=2, batch_size=6, task={"sampler": sampler}))
    drawn = make_sampler(sampler, data.train.labels, 6, config.seed)
    rows = learned_rows(config, data.train.labels)
    assert set(rows) == {*drawn.rows(1), *drawn.rows(2)}
    assert rows == sorted(rows)
    assert scores(events, "baseline")["train_rows"] == len(rows) < len(data.train)


def test_the_probe_is_fitted_on_the_rows_of_both_phases(draft: Draft) -> None:
    phases = preset_phases("simcse", steps=2, batch_size=6)
    config, data = prepare(draft(more={"phases": phases}), gpu=False)
    drawn = make_sampler("random", data.train.labels, 6, config.seed)
    assert set(learned_rows(config, data.train.labels)) == set(drawn.rows(1))  # one step each, with the same rows


def test_the_probe_is_fitted_on_a_bounded_number_of_rows(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrained, "ROWS_MAX", 10)
    config, data = prepare(draft(steps=30), gpu=False)
    rows = learned_rows(config, data.train.labels)
    assert len(rows) == 10
    assert (rows[0], rows[-1]) == (0, len(data.train) - 1)


def test_the_probe_encodes_a_few_texts_between_steps(draft: Draft) -> None:
    config, data, events = run_draft(draft(steps=30))
    texts = len(data.train) + len(data.validation) + len(data.test)
    at_once = max(untrained.TEXTS_AT_ONCE, -(-texts // 15))
    place = next(i for i, e in enumerate(events) if isinstance(e, Evaluation) and e.split == "baseline")
    steps = sum(isinstance(event, Step) for event in events[:place])
    assert steps == -(-texts // at_once) > 1
    assert steps <= config.steps // 2


def test_the_probe_changes_no_step(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, events = run_draft(draft(steps=12))
    monkeypatch.setattr(Baseline, "encode_next", lambda self: iter(()))
    monkeypatch.setattr(Baseline, "encode_remaining", lambda self: iter(()))
    _, _, without = run_draft(draft(steps=12))
    assert curve(events) == curve(without)


def test_a_cached_baseline_is_reported_after_the_first_step(draft: Draft) -> None:
    cache: VectorCache = {}
    _, _, first = run_draft(draft(steps=30), cache=cache)
    _, _, again = run_draft(draft(steps=30), cache=cache)
    kinds = [event.split if isinstance(event, Evaluation) else type(event).__name__ for event in again]
    assert kinds.index("baseline") < kinds.index("Step") + 4
    for split in ("baseline", "baseline_test"):
        assert scores(again, split) == scores(first, split)
    _, _, fewer = run_draft(draft(steps=1, batch_size=6), cache=cache)
    assert scores(fewer, "baseline")["train_rows"] == 6


def test_a_run_of_one_step_has_it_before_its_end(draft: Draft) -> None:
    _, _, events = run_draft(draft(steps=1))
    splits = [event.split for event in events if isinstance(event, Evaluation)]
    assert splits.index("baseline_test") < splits.index("test")


def test_a_resumed_run_fits_the_probe_on_the_pre_trained_encoder(draft: Draft, tmp_path: Any) -> None:
    config, data, straight = run_draft(draft(steps=30, optimiser={"learning_rate": 1e-2}))
    events = list(train(config, data, controls=Script(stop_after=1), checkpoints=Checkpoints(tmp_path)))
    assert not evaluations(events, "baseline")
    resumed = list(train(config, data, checkpoints=Checkpoints(tmp_path), resume=True))
    assert scores(resumed, "baseline") == scores(straight, "baseline")
