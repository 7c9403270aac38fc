"""Outputs of `encode`, against transformers on each text alone, for every family.

The attention of [CLS] is compared with row 0 of transformers' own eager attention.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from core.encoders.model import Encoder
from core.encoders.packing import NO_TEXT, Tokens
from core.encoders.taps import Taps
from tests.cases import each
from tests.core.encoders.test_model import CONFIGS, TEXTS

BLOCKS = 3
SPECIAL = frozenset({5, 14, 9})  # the last text has no special tokens, the third has only special tokens


def made(model_type: str, pooling: Any = "cls") -> Encoder:
    """Return an encoder of three blocks with weights so large that attention is far from uniform."""
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[model_type])
    config.num_hidden_layers = BLOCKS
    model = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for weight in (p for p in model.parameters() if p.ndim >= 2):
            weight.mul_(8)
    encoder = Encoder(model, pooling).eval()
    encoder.special_ids = SPECIAL
    return encoder


def eager(encoder: Encoder) -> Any:
    """Return the same base model with eager attention, which returns its weights."""
    config = copy.deepcopy(encoder.model.config)
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager")
    model.load_state_dict(encoder.model.state_dict())
    return model.eval().base_model


def hidden(encoder: Encoder, text: Tokens) -> tuple[Tensor, ...]:
    """Return [T, H] of the embeddings and of each layer, for one text in its own batch."""
    found = encoder.base(input_ids=torch.tensor([text.ids]), output_hidden_states=True).hidden_states
    return tuple(states[0] for states in found)


def gradients(encoder: Encoder, loss: Tensor) -> dict[str, Tensor]:
    encoder.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None and p.grad.any()}


def assert_same_gradients(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-3, msg=name)


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def assert_untouched(encoder: Encoder) -> None:
    for module in encoder.modules():
        assert "forward" not in vars(module)
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        assert not [hook for hook in hooks if hook.__module__.startswith("core.")]  # transformers has hooks too


@each("pooling", ["cls", "mean"])
@each("model_type", CONFIGS)
@torch.inference_mode()
def test_each_layer_gives_the_pooled_vector_of_its_block(model_type: str, pooling: str) -> None:
    encoder = made(model_type, pooling)
    found = encoder.encode(TEXTS, Taps(layers=(3, 0, 1, 2))).pooled
    assert set(found) == {0, 1, 2, 3}
    states = [hidden(encoder, text) for text in TEXTS]
    for layer, vectors in found.items():
        close(vectors, torch.stack([s[layer][0] if pooling == "cls" else s[layer].mean(0) for s in states]))
    close(encoder.encode(TEXTS, Taps(layers=(0,))).pooled[0], found[0])
    close(encoder.pooled(TEXTS), found[BLOCKS])
    torch.testing.assert_close(encoder.pooled(TEXTS), encoder.encode(TEXTS).pooled[BLOCKS], atol=0, rtol=0)


@each("model_type", CONFIGS)
@torch.inference_mode()
def test_blocks_above_the_highest_tap_are_not_computed(model_type: str) -> None:
    encoder = made(model_type)
    ran: list[int] = []
    for number, block in enumerate(encoder.blocks, start=1):
        block.attention.register_forward_hook(lambda *_, number=number: ran.append(number))
    expected = torch.stack([hidden(encoder, text)[2][0] for text in TEXTS])
    ran.clear()
    found = encoder.encode(TEXTS, Taps(layers=(2,))).pooled
    assert 3 not in ran
    assert list(found) == [2]
    close(found[2], expected)


def attended(base: Any, text: Tokens, layer: int, k: int) -> list[int]:
    """Return the positions of the k tokens that [CLS] attends to most. `base` has eager attention."""
    with torch.no_grad():
        attention = base(input_ids=torch.tensor([text.ids]), output_attentions=True).attentions
    row = attention[layer - 1][0, :, 0].mean(0).tolist()
    places = [place for place, token in enumerate(text.ids) if token not in SPECIAL]
    return sorted(places, key=lambda place: -row[place])[:k]


@each("model_type", CONFIGS)
def test_the_most_attended_tokens_come_with_their_vectors_and_gradients(model_type: str) -> None:
    encoder = made(model_type)
    base = eager(encoder)
    taps = Taps(layers=(3,), tokens=((2, 3), (3, 9)))
    encoded = encoder.encode(TEXTS, taps)
    assert {layer: views.vectors.shape for layer, views in encoded.tokens.items()} == {2: (5, 3, 16), 3: (5, 9, 16)}
    squares = torch.zeros(())
    for layer, k in taps.tokens:
        views = encoded.tokens[layer]
        for i, text in enumerate(TEXTS):
            places = attended(base, text, layer, k)
            assert views.mask[i].tolist() == [n < len(places) for n in range(k)]
            expected = hidden(encoder, text)[layer][places]
            close(views.vectors[i, : len(places)], expected)
            assert not views.vectors[i, len(places) :].any()
            squares = squares + expected.square().sum()
    pooled = torch.stack([hidden(encoder, text)[3][0] for text in TEXTS])
    close(encoded.pooled[3], pooled)
    expected_gradients = gradients(encoder, squares + pooled.sum())
    loss = sum(views.vectors.square().sum() for views in encoded.tokens.values()) + encoded.pooled[3].sum()
    assert_same_gradients(gradients(encoder, loss), expected_gradients)
    assert_untouched(encoder)


@each("model_type", CONFIGS)
def test_a_change_of_embeddings_reaches_the_texts_it_names(model_type: str) -> None:
    encoder = made(model_type)
    seen: list[tuple[Tensor, Tensor]] = []

    def change(embeddings: Tensor, owners: Tensor, special: Tensor) -> Tensor:
        seen.append((owners, special))
        return torch.where((owners == 1).unsqueeze(-1) & ~special.unsqueeze(-1), -2 * embeddings, embeddings)

    plain = encoder.pooled(TEXTS)
    changed = encoder.encode(TEXTS, change=change).pooled[BLOCKS]
    text = TEXTS[1]
    signs = torch.tensor([1.0 if token in SPECIAL else -2.0 for token in text.ids])
    with encoder.base.embeddings.register_forward_hook(lambda _m, _i, output: output * signs.view(1, -1, 1)):
        expected = hidden(encoder, text)[BLOCKS][0]
    close(changed[1], expected)
    assert not torch.allclose(plain[1], expected, atol=1e-2)
    others = torch.tensor([0, 2, 3, 4])
    torch.testing.assert_close(changed[others], plain[others], atol=0, rtol=0)
    counts = torch.cat([owners[owners != NO_TEXT] for owners, _ in seen]).bincount()
    assert counts.tolist() == [len(t.ids) for t in TEXTS]
    words = sum(int((~special).sum()) for _, special in seen)
    assert words == sum(token not in SPECIAL for t in TEXTS for token in t.ids)
    assert_untouched(encoder)


def test_what_is_patched_is_put_back_after_an_error() -> None:
    encoder = made("bert")

    def refuse(*_: Tensor) -> Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        encoder.encode(TEXTS, Taps(layers=(2,), tokens=((1, 2),)), change=refuse)
    assert_untouched(encoder)


def test_half_precision_inside_gives_float32_outside() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoded = made("bert").encode(TEXTS, Taps(layers=(1, 3), tokens=((3, 2),)))
    kinds = {v.dtype for v in encoded.pooled.values()} | {v.vectors.dtype for v in encoded.tokens.values()}
    assert kinds == {torch.float32}


def attention_rows(encoder: Encoder, *layers: int) -> dict[int, Tensor]:
    return encoder.encode(TEXTS, Taps(attention=layers)).attention


def expected_rows(encoder: Encoder, layer: int) -> tuple[Tensor, Tensor]:
    longest = max(len(text.ids) for text in TEXTS)
    rows = torch.zeros(len(TEXTS), encoder.model.config.num_attention_heads, longest)
    mask = torch.zeros(len(TEXTS), longest, dtype=torch.bool)
    base = eager(encoder)
    for i, text in enumerate(TEXTS):
        attention = base(input_ids=torch.tensor([text.ids]), output_attentions=True).attentions
        rows[i, :, : len(text.ids)] = attention[layer - 1][0, :, 0]
        mask[i, : len(text.ids)] = True
    return rows, mask


@each("model_type", CONFIGS)
@torch.no_grad()
def test_rows_are_those_of_eager_attention(model_type: str) -> None:
    encoder = made(model_type)
    found = attention_rows(encoder, 3, 1)
    assert set(found) == {1, 3}
    for layer, rows in found.items():
        expected, real = expected_rows(encoder, layer)
        uniform = real.unsqueeze(1) / real.sum(1).view(-1, 1, 1)
        assert (expected - uniform).abs().max() > 0.05
        close(rows, expected)
        assert not rows.masked_select(~real.unsqueeze(1)).any()
    assert_untouched(encoder)


@each("model_type", CONFIGS)
def test_rows_have_neither_gradient_nor_attention_dropout(model_type: str) -> None:
    encoder = made(model_type)
    expected = attention_rows(encoder, 1)[1]
    encoder.train()
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    path = encoder.family.attention_dropout or f"{encoder.family.query.rpartition('.')[0]}.dropout"
    before = encoder.pooled(TEXTS)
    for block in encoder.blocks:
        block.get_submodule(path).p = 0.5
    assert not torch.allclose(encoder.pooled(TEXTS), before)  # this dropout has an effect
    rows = attention_rows(encoder, 1)[1]
    assert not rows.requires_grad
    close(rows, expected)


@each("model_type", ["bert", "distilbert"])
@torch.no_grad()
def test_an_adapter_around_a_projection_is_listened_to(model_type: str) -> None:
    class Adapted(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Tensor:
            return -3 * self.inner(x)

    encoder, other = made(model_type), made(model_type)
    for block in encoder.blocks:
        block.set_submodule(encoder.family.query, Adapted(block.get_submodule(encoder.family.query)))
    for block in other.blocks:
        for parameter in block.get_submodule(other.family.query).parameters():
            parameter.mul_(-3)
    close(attention_rows(encoder, 2)[2], expected_rows(other, 2)[0])


@each("model_type", CONFIGS)
@torch.no_grad()
def test_asking_for_attention_changes_no_vector_and_asking_for_tokens_no_attention(model_type: str) -> None:
    encoder = made(model_type)
    plain = encoder.encode(TEXTS, Taps(layers=(2, 3)))
    both = encoder.encode(TEXTS, Taps(layers=(2, 3), tokens=((2, 3), (3, 2)), attention=(1, 2, 3)))
    close(both.pooled[3], plain.pooled[3])
    alone = encoder.encode(TEXTS, Taps(layers=(2, 3), attention=(1, 2, 3)))
    assert torch.equal(alone.pooled[3], plain.pooled[3])
    for layer in (1, 2, 3):
        close(both.attention[layer], alone.attention[layer])
