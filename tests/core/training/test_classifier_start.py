"""With many classes the classifier starts as a linear probe, and batches hold positives. Few classes change nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from core.advice.prepare import prepare
from core.artifacts.weights import load_at, weight_steps
from core.config import RunConfig, parse_config
from core.config.compare import config_hash
from core.encoders.packing import Tokens
from core.store import Store
from core.training.trainable import fit_classifier
from core.weight_files import snapshot_path
from tests.conftest import made_rows, write_csv
from tests.core.artifacts.made import frame_again, recorded
from tests.core.training.made import Draft, curve, load_run_encoder, preset_phases, run_in_attempts

CLASSES = 7


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return rows whose class is one of seven words."""
    words = ["actor", "plot", "scene", "score", "sound", "cut", "cast"]
    rows = [(f"{text} {words[i % CLASSES]}", words[i % CLASSES]) for i, (text, _) in enumerate(made_rows(140))]
    return write_csv(tmp_path_factory.mktemp("seven") / "seven.csv", rows)


@pytest.fixture
def many(draft: Draft, seven: Path) -> Draft:
    def make(**more: object) -> RunConfig:
        return draft(task={"path": str(seven)}, **more)

    return make


def test_the_fit_is_a_logistic_regression_on_what_the_last_layer_reads(many: Draft) -> None:
    config, data = prepare(many(), gpu=False)
    encoder, tokenizer = load_run_encoder(config, data)
    fit_classifier(encoder, tokenizer, data.train.inputs, data.train.labels, seed=0)
    tokens = tokenizer(data.train.inputs)
    with torch.no_grad():
        pooled = encoder.pooled(tokens)
        features = encoder.model.bert.pooler(pooled.unsqueeze(1)).double().numpy()
        found = encoder.logits(pooled).softmax(1).numpy()
    with_bias = np.hstack([features, np.ones((len(features), 1))])
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=5_000)
    expected = model.fit(with_bias, data.train.labels).predict_proba(with_bias)
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_seven_classes_start_from_the_probe_and_six_as_before(many: Draft, draft: Draft) -> None:
    config, _ = prepare(many(), gpu=False)
    assert (config.classifier_start, config.task.sampler) == ("probe", "class_balanced")
    asked, _ = prepare(many(more={"classifier_start": "random"}), gpu=False)
    assert asked.classifier_start == "random"
    phases = preset_phases("simcse")
    assert prepare(many(more={"phases": phases}), gpu=False)[0].classifier_start == "random"
    few, _ = prepare(draft(), gpu=False)
    assert (few.classifier_start, few.task.sampler) == ("random", "random")


def test_a_run_of_an_earlier_version_keeps_its_start_and_its_hash(many: Draft) -> None:
    config, _ = prepare(many(more={"classifier_start": "random"}), gpu=False)
    former = config.model_dump(mode="json")
    del former["classifier_start"]
    assert parse_config(former).classifier_start == "random"
    assert config_hash(parse_config(former).to_json()) == config_hash(config.to_json())


def test_frame_0_is_the_fitted_model_and_its_weights_are_kept(store: Store, many: Draft) -> None:
    run = recorded(store, many(more={"probe": {"frame_steps": [0, 8]}, "checkpoint": {"snapshot_steps": []}}))
    assert weight_steps(store, run) == (0, 8)
    encoder, tokenizer = load_at(store, run, 0)
    _, logits = frame_again(store, run, encoder, tokenizer, untrained=True)
    np.testing.assert_allclose(logits, store.logits(run.id, 0), atol=1e-5)
    snapshot_path(store.run_folder(run.id), 0).unlink()
    assert weight_steps(store, run) == (8,)


def test_a_sample_of_the_rows_has_every_class(many: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows cycle through the classes, so taking every seventh row would give a single class."""
    monkeypatch.setattr("core.training.trainable.FITTED_MAX", 20)
    config, data = prepare(many(), gpu=False)
    encoder, tokenizer = load_run_encoder(config, data)
    by_class = [
        [text for text, label in zip(data.train.texts, data.train.labels, strict=True) if label == number]
        for number in range(CLASSES)
    ]
    texts = [text for turn in zip(*by_class, strict=False) for text in turn]
    read: list[str] = []

    def tokens(given: list[str]) -> list[Tokens]:
        read.extend(given)
        return tokenizer(given)

    fit_classifier(encoder, tokens, texts, [*range(CLASSES)] * (len(texts) // CLASSES), seed=0)
    assert len(read) == 20
    assert len({text.split()[-1] for text in read}) == CLASSES


def test_a_resumed_run_is_on_the_same_curve(many: Draft, tmp_path: Path) -> None:
    config, data = prepare(many(), gpu=False)
    whole = run_in_attempts(config, data, tmp_path / "whole", ())
    parts = run_in_attempts(config, data, tmp_path / "parts", (3, 5))
    assert curve(parts) == curve(whole)
