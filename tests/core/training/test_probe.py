"""The examples on the map, the attention of [CLS] in them, and the weights stored alongside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.encoders.model import Encoder, Tokenizer
from core.events import TRAIN, VALIDATION, Evaluation, Started, Tokens
from core.representation.neural_collapse import neural_collapse
from core.training import probe
from core.training.checkpoints import Checkpoints, load_learned
from core.weight_files import snapshot_path, snapshot_steps
from tests.core.training.made import Draft, Script, Trained, assert_same_run, frames_of, load_run_encoder, run_draft

PROBE = {"probe": {"size": 6, "train_size": 4, "frame_steps": [4]}}


@pytest.fixture(scope="module")
def plain(draft: Draft, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    checkpoints = Checkpoints(tmp_path_factory.mktemp("plain"))
    return Trained(*run_draft(draft(more=PROBE), checkpoints=checkpoints), checkpoints.path)


@torch.no_grad()
def alone(encoder: Encoder, tokenizer: Tokenizer, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Compute with transformers the vector of one text and the attention of [CLS] in every block."""
    encoder.base.set_attn_implementation("eager")
    ids = torch.tensor([tokenizer([text])[0].ids])
    found = encoder.base(input_ids=ids, output_attentions=True)
    return found.last_hidden_state[0, 0].numpy(), np.stack([block[0, :, 0].numpy() for block in found.attentions])


def test_the_probe_is_validation_rows_and_then_training_rows(plain: Trained) -> None:
    data = plain.data
    (started,) = [event for event in plain.events if isinstance(event, Started)]
    probe = started.probe
    assert probe.ids == tuple(range(10))
    assert probe.splits == (VALIDATION,) * 6 + (TRAIN,) * 4
    assert probe.held_out == 6
    assert probe.texts[:6] == data.validation.display_texts[:6]
    rows = [data.train.display_texts.index(text) for text in probe.texts[6:]]
    assert rows == sorted(set(rows))
    assert probe.labels[6:] == tuple(data.train.labels[row] for row in rows)


def test_a_frame_holds_the_vectors_and_attention_of_exactly_these_texts(plain: Trained) -> None:
    config, data, events, checkpoint = plain
    (started,) = [event for event in events if isinstance(event, Started)]
    (tokens,) = [event for event in events if isinstance(event, Tokens)]
    assert tokens.rows == tuple(range(10))
    first, last = load_run_encoder(config, data), load_run_encoder(config, data)
    load_learned(checkpoint, last[0])
    for step, model in ((0, first), (8, last)):
        frame = frames_of(events)[step]
        assert frame.attention.shape[:2] == (2, 2)
        column = 0
        for row, text in zip(tokens.rows, tokens.texts, strict=True):
            vector, attention = alone(*model, started.probe.texts[row])
            np.testing.assert_allclose(frame.embeddings[row], vector, atol=1e-5)
            kept = frame.attention[:, :, column : column + text.length]
            np.testing.assert_allclose(kept.astype(np.float32), attention, atol=1e-3)
            column += text.length
        assert column == frame.attention.shape[2]


def test_neural_collapse_is_measured_on_the_inputs_of_the_last_layer(plain: Trained) -> None:
    config, data, events, checkpoint = plain
    encoder = load_run_encoder(config, data)[0]
    load_learned(checkpoint, encoder)
    vectors = torch.from_numpy(frames_of(events)[8].embeddings[:6])
    (hidden, linear) = (encoder.model.get_submodule(name) for name in encoder.family.head_layers)
    with torch.no_grad():
        inputs = torch.tanh(hidden(vectors))
        predicted = encoder.logits(vectors).argmax(1).numpy()
    weights = linear.weight.detach().numpy()
    expected = neural_collapse(inputs.numpy(), data.validation.labels[:6], weights, predicted)
    scores = [event for event in events if isinstance(event, Evaluation) and event.split == VALIDATION]
    assert {name: scores[-1].values[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert expected.keys() >= {"nc1", "nc3", "nc4"}


def test_words_are_those_of_the_text_with_their_tokens(plain: Trained) -> None:
    (started,) = [event for event in plain.events if isinstance(event, Started)]
    (tokens,) = [event for event in plain.events if isinstance(event, Tokens)]
    for row, text in zip(tokens.rows, tokens.texts, strict=True):
        words = started.probe.texts[row].split()
        assert [text.surface(word) for word in text.words] == words
        assert [word.places for word in text.words] == [(i,) for i in range(1, len(words) + 1)]
        assert text.length == len(words) + 2


def test_attention_of_texts_that_do_not_fit_is_not_kept(
    draft: Draft, plain: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = [event for event in plain.events if isinstance(event, Tokens)]
    per_token = 2 * 2 * 2 * 3  # bytes, blocks, heads, frames
    fitting = sum(text.length for text in whole.texts[:3]) * per_token
    for size, kept in ((fitting, 3), (fitting - 1, 2), (0, 0)):
        monkeypatch.setattr(probe, "ATTENTION_BYTES_MAX", size)
        _, _, events = run_draft(draft(more=PROBE))
        (tokens,) = [event for event in events if isinstance(event, Tokens)]
        assert tokens.texts == whole.texts[:kept]
        columns = sum(text.length for text in tokens.texts)
        for frame in frames_of(events).values():
            assert (0 if frame.attention is None else frame.attention.shape[2]) == columns


@pytest.mark.parametrize("adapters", [False, True])
def test_a_snapshot_is_a_plain_model_of_its_frame_and_leaves_the_run_as_it_was(
    draft: Draft, tmp_path: Path, adapters: bool
) -> None:
    lora = {"part": "lora", "lora_rank": 2, "lora_dropout": 0.0}
    given: dict[str, Any] = {"trainable": lora, "optimiser": {"learning_rate": 0.02}} if adapters else {}
    more, plain = (PROBE | {"checkpoint": {"snapshot_steps": steps}} for steps in ([4], []))
    config, data, events = run_draft(draft(more=more, **given), checkpoints=Checkpoints(tmp_path))
    assert snapshot_steps(tmp_path) == (4,)
    assert_same_run(events, run_draft(draft(more=plain, **given))[2])
    encoder, tokenizer = load_run_encoder(config, data)
    load_learned(snapshot_path(tmp_path, 4), encoder)
    (started,) = [event for event in events if isinstance(event, Started)]
    frames = frames_of(events)
    for row in range(10):
        vector, _ = alone(encoder, tokenizer, started.probe.texts[row])
        np.testing.assert_allclose(frames[4].embeddings[row], vector, atol=1e-5)
        assert all(not np.allclose(frames[step].embeddings[row], vector, atol=1e-3) for step in (0, 8))


def test_a_run_that_is_stopped_keeps_the_weights_it_stopped_with(draft: Draft, tmp_path: Path) -> None:
    _, _, events = run_draft(draft(more=PROBE), checkpoints=Checkpoints(tmp_path), controls=Script(stop_after=5))
    last = events[-1]
    assert last.status == "stopped"
    assert last.step in snapshot_steps(tmp_path)
