"""Trainable weights, adapters and their merging, re-initialised blocks and checkpointing, for every family."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from core.config import TrainableConfig
from core.encoders.model import Encoder, load_encoder
from core.encoders.partial import first_tokens_only
from core.encoders.taps import Taps
from core.training.trainable import (
    apply_trainable,
    merge_adapters,
    reinitialise,
    set_gradient_checkpointing,
)
from tests.cases import each
from tests.core.encoders import test_model
from tests.core.encoders.test_model import CONFIGS, TEXTS

LORA = TrainableConfig(part="lora", lora_rank=3, lora_alpha=6.0, lora_dropout=0.5)
LAST = TrainableConfig(part="last_blocks", blocks=1)


def made(model_type: str, pooling: Any = "cls") -> Encoder:
    """Return the encoder of the other tests, with weights so large that every layer affects the output."""
    encoder = test_model.made(model_type, pooling)
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(10)
    return encoder


def outputs(encoder: Encoder) -> Tensor:
    """Return pooled vectors and logits in evaluation mode, [B, H + C]."""
    encoder.eval()
    with torch.inference_mode():
        pooled = encoder.pooled(TEXTS)
        return torch.cat([pooled, encoder.logits(pooled)], dim=1)


def with_trained_adapters(encoder: Encoder) -> Encoder:
    """Add adapters as after training, with nonzero B."""
    apply_trainable(encoder, LORA)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    return encoder


def gradients(encoder: Encoder, learning: list[nn.Module]) -> dict[str, Tensor]:
    """Compute the gradients of one backward pass with dropout, from a fixed random state."""
    encoder.zero_grad()
    encoder.train_only(learning)
    torch.manual_seed(1)
    encoder.logits(encoder.pooled(TEXTS)).square().sum().backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


@each("model_type", CONFIGS)
class TestLora:
    def test_fresh_adapters_change_nothing(self, model_type: str) -> None:
        encoder = made(model_type)
        model, expected = encoder.model, outputs(encoder)
        apply_trainable(encoder, LORA)
        assert encoder.model is model
        assert type(encoder.base) is type(made(model_type).base)
        assert torch.equal(outputs(encoder), expected)

    def test_only_adapters_and_head_learn(self, model_type: str) -> None:
        encoder = made(model_type)
        encoder.projections = nn.ModuleDict({"supcon": nn.Linear(16, 4)})
        learning = apply_trainable(encoder, LORA)
        head = tuple(f"model.{path}." for path in encoder.family.head_modules)
        for name, parameter in encoder.named_parameters():
            expected = "lora_" in name or name.startswith((*head, "projections."))
            assert parameter.requires_grad == expected, name
        learned = {name for name, p in encoder.named_parameters() if p.requires_grad and "projections" not in name}
        assert gradients(encoder, learning).keys() == learned

    def test_merging_keeps_what_the_adapters_changed(self, model_type: str) -> None:
        encoder = made(model_type)
        plain, modules = outputs(encoder), [(name, type(m)) for name, m in encoder.named_modules()]
        names = [name for name, _ in encoder.named_parameters()]
        attributes = set(vars(encoder.model))
        with_trained_adapters(encoder)
        adapted = outputs(encoder)
        assert (adapted - plain).abs().amax() > 0.1
        merge_adapters(encoder)
        torch.testing.assert_close(outputs(encoder), adapted, atol=1e-5, rtol=1e-5)
        assert [(name, type(m)) for name, m in encoder.named_modules()] == modules
        assert [name for name, _ in encoder.named_parameters()] == names
        assert set(vars(encoder.model)) == attributes

    def test_a_merged_model_is_a_standard_classifier(self, model_type: str, tmp_path: Path) -> None:
        encoder = with_trained_adapters(made(model_type))
        merge_adapters(encoder)
        encoder.model.save_pretrained(tmp_path / model_type)
        loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / model_type).eval()
        assert torch.equal(outputs(Encoder(loaded, "cls")), outputs(encoder))

    def test_a_second_phase_with_adapters_has_fresh_ones(self, model_type: str) -> None:
        encoder = with_trained_adapters(made(model_type))
        expected = outputs(encoder)
        apply_trainable(encoder, LORA.model_copy(update={"lora_rank": 5}))
        torch.testing.assert_close(outputs(encoder), expected, atol=1e-5, rtol=1e-5)
        for block in encoder.blocks:
            drawn = [p for name, p in block.named_parameters() if "lora_A" in name]
            assert len(drawn) == len(encoder.family.lora_targets)
            assert all(p.shape == (5, 16) for p in drawn)


def test_dropout_of_blocks_and_adapters_is_on_and_that_of_the_embeddings_off_with_adapters() -> None:
    encoder = made("bert")
    encoder.train_only(apply_trainable(encoder, LORA))
    dropouts = {name: module for name, module in encoder.model.named_modules() if isinstance(module, nn.Dropout)}
    assert {m.p for name, m in dropouts.items() if "lora_dropout" in name and m.training} == {0.5}
    assert all(module.training == ("embeddings" not in name) for name, module in dropouts.items())


@each("model_type", CONFIGS)
class TestReinitialise:
    def test_the_top_block_is_drawn_anew_and_nothing_else(self, model_type: str) -> None:
        encoder = made(model_type)
        for module in encoder.modules():
            module._is_hf_initialized = True
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.fill_(7.0)
                parameter._is_hf_initialized = True
        top = {id(p) for p in encoder.blocks[-1].parameters()}
        reinitialise(encoder, 1)
        spread = CONFIGS[model_type].initializer_range
        for name, parameter in encoder.named_parameters():
            if id(parameter) not in top:
                assert (parameter == 7.0).all(), name
            elif parameter.ndim >= 2:
                assert parameter.mean().abs() < spread / 2, name
                assert 0.8 * spread < parameter.std() < 1.2 * spread, name
            else:
                norm_weight = "norm" in name.lower() and name.endswith("weight")
                assert (parameter == float(norm_weight)).all(), name

    def test_every_block_can_be_drawn_and_draws_follow_the_random_state(self, model_type: str) -> None:
        drawn = []
        for seed in (3, 3, 4):
            encoder = made(model_type)
            torch.manual_seed(seed)
            reinitialise(encoder, 2)
            drawn.append(torch.cat([p.detach().flatten() for p in encoder.blocks.parameters()]))
        assert torch.equal(drawn[0], drawn[1])
        assert not torch.equal(drawn[0], drawn[2])


def test_a_loaded_encoder_is_drawn_anew_like_a_made_one(tiny_encoder: Path) -> None:
    encoder, _ = load_encoder(str(tiny_encoder), classes=("a", "b"), max_length=8)
    before = {name: p.detach().clone() for name, p in encoder.named_parameters()}
    reinitialise(encoder, 1)
    changed = {name for name, p in encoder.named_parameters() if not torch.equal(p, before[name])}
    # Biases and norms of this untrained encoder are already 0 and 1.
    assert changed == {name for name, p in before.items() if ".layer.1." in name and p.ndim >= 2}


@each("model_type", CONFIGS)
@each(
    "trainable",
    [TrainableConfig(part=part, blocks=k) for part, k in (("all", 2), ("last_blocks", 1), ("last_blocks", 2))]
    + [LORA, TrainableConfig(part="classifier")],
)
def test_frozen_blocks_are_those_below_the_first_gradient(model_type: str, trainable: TrainableConfig) -> None:
    encoder = made(model_type)
    learning = apply_trainable(encoder, trainable)
    encoder.train_only(learning)
    inputs: list[bool] = []  # True if a block's output belongs to the graph
    for block in encoder.blocks:
        block.register_forward_hook(
            lambda _m, _i, out: inputs.append((out if torch.is_tensor(out) else out[0]).requires_grad)
        )
    encoder.pooled(TEXTS)
    below = sum(not in_graph for in_graph in inputs) * len(encoder.blocks) // len(inputs)
    assert trainable.frozen(len(encoder.blocks)) == below


@each("model_type", CONFIGS)
@each(("pooling", "trainable"), [("cls", LORA), ("mean", TrainableConfig()), ("cls", LAST)])
def test_checkpointing_keeps_every_gradient_and_recomputes_no_frozen_block(
    model_type: str, pooling: Any, trainable: TrainableConfig
) -> None:
    encoder = made(model_type, pooling)
    learning = apply_trainable(encoder, trainable)
    expected = gradients(encoder, learning)
    passes = 1 if encoder.family.packs else 2  # families without packing read a batch in two chunks
    calls: list[None] = []  # of the feed-forward of the first block
    inner = next(m for m in encoder.blocks[0].modules() if isinstance(m, nn.Linear) and m.out_features == 32)
    inner.register_forward_hook(lambda *_: calls.append(None))
    set_gradient_checkpointing(encoder, True)
    found = gradients(encoder, learning)
    assert len(calls) == passes * (1 if trainable is LAST else 2)  # once more for the backward pass
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert torch.equal(gradient, expected[name]), name
    set_gradient_checkpointing(encoder, False)
    calls.clear()
    gradients(encoder, learning)
    assert len(calls) == passes


@each("model_type", CONFIGS)
def test_checkpointing_keeps_the_gradients_of_tapped_layers_and_tokens(model_type: str) -> None:
    """Hooks inside a block are gone when the backward pass recomputes it."""
    encoder = made(model_type)
    learning = apply_trainable(encoder, LORA)
    found = []
    for on in (False, True):
        set_gradient_checkpointing(encoder, on)
        encoder.zero_grad()
        encoder.train_only(learning)
        torch.manual_seed(1)
        encoded = encoder.encode(TEXTS, Taps(layers=(1, 2), tokens=((1, 2),)))
        vectors = [*encoded.pooled.values(), encoded.tokens[1].vectors]
        torch.stack([vector.sin().sum() for vector in vectors]).sum().backward()
        found.append({name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys() == {n for n, _ in encoder.named_parameters() if "lora_" in n}
    assert all(torch.equal(gradient, found[1][name]) for name, gradient in found[0].items())


def test_a_checkpointed_copy_uses_its_own_weights() -> None:
    encoder = made("mpnet")
    set_gradient_checkpointing(encoder, True)
    duplicate = copy.deepcopy(encoder)
    with torch.no_grad():
        for parameter in duplicate.blocks.parameters():
            parameter.zero_()
    assert not torch.allclose(outputs(duplicate), outputs(encoder))


def test_a_narrowed_block_is_still_narrow_when_checkpointed() -> None:
    encoder = made("bert")
    set_gradient_checkpointing(encoder, True)
    encoder.train()
    block = encoder.blocks[-1]
    hidden, mask = torch.randn(1, 6, 16), torch.ones(1, 1, 6, 6, dtype=torch.bool)
    with first_tokens_only(block, torch.tensor([0, 4])):
        assert block(hidden, mask).shape == (2, 1, 16)
    assert block(hidden, mask).shape == (1, 6, 16)
