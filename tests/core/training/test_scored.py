"""Runs on pairs with similarity scores: what they learn from, their score, and losses that such a task refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cosine
from scipy.stats import spearmanr

from core.advice.prepare import prepare
from core.config import RunConfig
from core.errors import ConfigError
from core.events import Evaluation
from core.training.checkpoints import TrainedModel
from tests.cases import each
from tests.core.training.made import Draft, build_phase, frames_of, run_draft, scored_csv

COSENT = {"terms": [{"loss": "cosent"}]}
DROPOUT = [{"view": "dropout"}]


@pytest.fixture
def scored(draft: Draft, tmp_path: Path) -> Draft:
    path = str(scored_csv(tmp_path / "scored.csv"))

    def make(*terms: dict[str, Any], task: dict[str, Any] | None = None, **phase: Any) -> RunConfig:
        objective = {"terms": list(terms), "combine": "additive"} if terms else COSENT
        return draft(task={"path": path} | (task or {}), objective=objective, **phase)

    return make


def scipy_spearman(vectors: NDArray[np.float32], scores: Sequence[float]) -> float:
    """Return the rank correlation of the cosine of vectors 2i and 2i + 1 with score 2i."""
    rows = vectors.astype(np.float64)
    cosines = [round(1 - cosine(a, b), 12) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    return float(spearmanr(cosines, scores[::2]).statistic)


def test_validation_and_test_are_scored_by_rank_correlation(scored: Draft) -> None:
    model = TrainedModel()
    config, data, events = run_draft(scored(steps=30, optimiser={"learning_rate": 1e-2}), trained=model)
    last = {event.split: event.values for event in events if isinstance(event, Evaluation)}
    frame = frames_of(events)[30]
    held_out = len(data.validation)
    assert config.probe.size == held_out
    expected = scipy_spearman(frame.embeddings[:held_out], data.validation.scores or ())
    assert last["validation"]["spearman"] == pytest.approx(expected)
    with torch.inference_mode():
        vectors = model.encoder.eval().pooled(model.tokenizer(list(data.test.texts))).numpy()
    # Rounding orders the near ties of pairs with the same words, and depends on the batches.
    assert last["test"]["spearman"] == pytest.approx(scipy_spearman(vectors, data.test.scores or ()), abs=0.1)


def test_the_untrained_encoder_is_scored_on_validation_and_test(scored: Draft) -> None:
    events = run_draft(scored())[2]
    found = [event for event in events if isinstance(event, Evaluation)]
    first = next(one for one in found if one.split == "validation" and one.step == 0)
    baselines = {one.split: one.values for one in found if one.split.startswith("baseline")}
    assert baselines["baseline"]["spearman"] == first.values["spearman"]
    assert -1 <= baselines["baseline_test"]["spearman"] <= 1


def test_a_batch_holds_the_two_texts_of_each_pair_and_their_scores(scored: Draft) -> None:
    phase = build_phase(scored({"loss": "cosent"}, {"loss": "simcse", "views": DROPOUT}))
    known = {(pair.first, pair.second): pair.score for pair in phase.setup.data.pairs}
    for step in (1, 2, 3):
        numbers = phase._examples.rows(step) if phase._examples else []
        pairs = [phase.setup.data.pairs[number] for number in numbers]
        batch = phase.batch(step)
        for number, side in enumerate(("first", "second")):
            texts = phase.setup.tokenizer([getattr(pair, side) for pair in pairs])
            assert [list(one.ids) for one in batch.tokens[number]] == [list(one.ids) for one in texts]
        expected = [known[pair.first, pair.second] for pair in pairs]
        assert batch.labels.tolist() == pytest.approx(expected)


CLASSIFIED = r"scored\.csv has similarity scores instead of classes; choose CoSENT, cosine MSE or SimCSE without"


@each(
    ("term", "message"),
    [
        ({"loss": "cross_entropy"}, f"objective = 'cross_entropy' cannot be used: {CLASSIFIED}"),
        ({"loss": "supcon"}, f"objective = 'supcon' cannot be used: {CLASSIFIED}"),
        ({"loss": "simcse", "views": DROPOUT, "level": "logits"}, f"objective = 'simcse' cannot be used: {CLASSIFIED}"),
        ({"loss": "simcse", "views": DROPOUT, "label_filter": True}, r"simcse\.label_filter = True .*; turn it off\."),
        ({"loss": "simcse_supervised"}, r"objective = 'simcse_supervised' .*scored\.csv has no triplets"),
    ],
)
def test_losses_that_need_classes_are_refused(scored: Draft, term: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare(scored(term), gpu=False)
    prepare(scored({"loss": "simcse", "views": DROPOUT}), gpu=False)


@each("loss", ["cosent", "cosine_mse"])
def test_a_task_with_classes_has_no_scores_to_learn(draft: Draft, loss: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"objective = '{loss}' .*small\.csv has no similarity scores; choose a task"
    ):
        prepare(draft(objective={"terms": [{"loss": loss}]}), gpu=False)


def test_a_batch_is_no_larger_than_there_are_pairs(scored: Draft) -> None:
    count = len(prepare(scored(), gpu=False)[1].pairs)
    prepare(scored(batch_size=count), gpu=False)
    with pytest.raises(ConfigError, match=rf"batch_size = {count + 1} .*has {count} pairs; give at most {count}\."):
        prepare(scored(batch_size=count + 1), gpu=False)
