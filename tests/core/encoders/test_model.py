"""Logits and gradients of a packed batch, against those of each text alone, for every family."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    CamembertConfig,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    MPNetConfig,
    PretrainedConfig,
    RobertaConfig,
    XLMRobertaConfig,
)

from core.encoders.model import Encoder, Tokenizer, load_encoder, set_dropout
from core.encoders.packing import NO_TEXT, Tokens, length_sorted_chunks, pack
from core.errors import ConfigError, EncoderError
from core.models.families import FAMILIES
from tests.cases import each
from tests.core.models.test_source import with_evil_pickle, with_torch_weights

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
}
DEBERTA: dict[str, Any] = SIZES | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
CONFIGS: dict[str, PretrainedConfig] = {
    "bert": BertConfig(**SIZES),
    "roberta": RobertaConfig(**SIZES),
    "xlm-roberta": XLMRobertaConfig(**SIZES),
    "camembert": CamembertConfig(**SIZES),
    "electra": ElectraConfig(embedding_size=8, **SIZES),
    "distilbert": DistilBertConfig(
        vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=40
    ),
    "mpnet": MPNetConfig(**SIZES),
    "deberta": DebertaConfig(**DEBERTA),
    "deberta-v2": DebertaV2Config(
        position_buckets=8,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        conv_kernel_size=3,
        **DEBERTA,
    ),
}
TEXTS = [Tokens(ids) for ids in [(5, 6, 7), (8, 9, 10, 11, 12, 13, 14), (5, 9), (20, 21, 22, 23), (30, 31, 32, 33, 34)]]


def made(model_type: str, pooling: Any = "cls") -> Encoder:
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(CONFIGS[model_type])
    return Encoder(model, pooling).eval()


def test_every_supported_type_has_a_family_and_a_test() -> None:
    assert set(FAMILIES) == set(CONFIGS)


@each("model_type", CONFIGS)
@torch.inference_mode()
def test_a_dropout_rate_reaches_every_mask_of_the_encoder_and_none_of_the_head(model_type: str) -> None:
    """At rate 0 two passes in training are equal, at any other they differ, and the head keeps its rate."""
    for pooling in ("cls", "mean"):
        encoder = made(model_type, pooling).train()
        head = {name: m.p for name, m in encoder.model.named_modules() if isinstance(m, nn.Dropout)}
        for rate in (0.3, 0.0):
            set_dropout(encoder, rate)
            rates = {name: m.p for name, m in encoder.model.named_modules() if isinstance(m, nn.Dropout)}
            of_encoder = {name for name in rates if name.startswith(encoder.model.base_model_prefix)}
            assert rates == head | dict.fromkeys(of_encoder, rate)
            assert len(of_encoder) > 2 * len(encoder.blocks)  # of hidden states and of attention
            assert torch.equal(encoder.pooled(TEXTS), encoder.pooled(TEXTS)) == (rate == 0)


@each("model_type", CONFIGS)
@torch.inference_mode()
def test_logits_are_those_of_the_standard_classification_model(model_type: str) -> None:
    encoder = made(model_type)
    expected = torch.cat([encoder.model(input_ids=torch.tensor([text.ids])).logits for text in TEXTS])
    torch.testing.assert_close(encoder.logits(encoder.pooled(TEXTS)), expected, atol=1e-5, rtol=1e-5)


@each("model_type", [name for name, family in FAMILIES.items() if family.bert_blocks])
def test_the_last_block_for_first_tokens_alone_has_the_same_gradients(model_type: str) -> None:
    gradients = []
    for family in (FAMILIES[model_type], dataclasses.replace(FAMILIES[model_type], bert_blocks=False)):
        encoder = made(model_type)
        encoder.family = family
        encoder.logits(encoder.pooled(TEXTS)).square().sum().backward()
        gradients.append({name: p.grad for name, p in encoder.named_parameters() if p.grad is not None})
        assert "forward" not in vars(encoder.blocks[-1])
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-6, rtol=1e-4, msg=name)


def test_rows_of_any_length_hold_every_token_once() -> None:
    texts = [Tokens((7,) * length) for length in (30, 3, 9, 14, 5, 5, 21, 2, 17, 8)]
    batch = pack(texts, padding_id=0, longest_row=40)
    assert batch.input_ids.shape[1] <= 40
    assert int((batch.owners != NO_TEXT).sum()) == sum(len(text.ids) for text in texts)
    alone = pack(texts, padding_id=0, share_rows=False)
    assert alone.input_ids.shape == (10, 30)
    assert batch.input_ids.numel() < alone.input_ids.numel() / 2


def test_chunks_hold_every_text_once_by_length() -> None:
    chunks = length_sorted_chunks(TEXTS, 2)
    assert sorted(i for chunk in chunks for i in chunk) == list(range(len(TEXTS)))
    assert [len(TEXTS[i].ids) for chunk in chunks for i in chunk] == sorted(len(t.ids) for t in TEXTS)


def test_a_folder_loads_with_a_fresh_head_of_the_asked_size(tiny_encoder: Path) -> None:
    encoder, tokenizer = load_encoder(str(tiny_encoder), classes=("a", "b", "c"), max_length=8)
    tokens = tokenizer(["the film was lovely", "dull"])
    assert tokens[1] == Tokens((2, 10, 3))
    assert encoder.special_ids == {0, 2, 3}
    assert encoder.logits(encoder.pooled(tokens)).shape == (2, 3)


def test_a_text_is_cut_at_the_maximum_length_and_tokenised_once(tiny_encoder: Path) -> None:
    class Counting:
        calls = 0
        pad_token_id = 0

        def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
            self.calls += len(texts)
            return {"input_ids": [[2, len(text), 3] for text in texts]}

    counting = Counting()
    tokenizer = Tokenizer(counting, 8)
    tokenizer(["one", "two", "one"])
    assert tokenizer(["two", "three"]) == [Tokens((2, 3, 3)), Tokens((2, 5, 3))]
    assert counting.calls == 3
    _, real = load_encoder(str(tiny_encoder), classes=("a", "b"), max_length=6)
    assert len(real(["the film was a very lovely story"])[0].ids) == 6


def test_a_length_beyond_the_positions_is_refused(tiny_encoder: Path) -> None:
    with pytest.raises(ConfigError, match=r"max_length = 65 .* at most 64"):
        load_encoder(str(tiny_encoder), classes=("a", "b"), max_length=65)


def test_torch_weights_are_read_only_where_there_are_no_safetensors(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_encoder, tmp_path / "bin-only")
    with_torch_weights(folder)
    from_bin, tokenizer = load_encoder(str(folder), classes=("a", "b"), max_length=32)
    from_safe, _ = load_encoder(str(tiny_encoder), classes=("a", "b"), max_length=32)
    tokens = tokenizer(["a lovely film"])
    with torch.inference_mode():
        torch.testing.assert_close(from_bin.eval().pooled(tokens), from_safe.eval().pooled(tokens))


def test_an_encoder_without_weights_or_a_vocabulary_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((tiny_encoder / "config.json").read_bytes())
    with pytest.raises(EncoderError, match="could not be loaded"):
        load_encoder(str(tmp_path), classes=("a", "b"))
    (tmp_path / "model.safetensors").write_bytes((tiny_encoder / "model.safetensors").read_bytes())
    with pytest.raises(EncoderError, match="its tokenizer has no vocabulary"):
        load_encoder(str(tmp_path), classes=["a", "b"], max_length=32)


def test_damaged_weights_and_a_pickle_that_runs_code_are_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_encoder, tmp_path / "copy")
    (folder / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(EncoderError, match="could not be loaded"):
        load_encoder(str(folder), classes=("a", "b"))
    (folder / "model.safetensors").unlink()
    marker = with_evil_pickle(folder)
    with pytest.raises(EncoderError, match="could not be loaded"):
        load_encoder(str(folder), classes=("a", "b"))
    assert not marker.exists()
