"""The [CLS] attention row of every family, against row 0 of transformers' own eager attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from core.encoders.model import Encoder
from core.encoders.taps import Taps
from tests.cases import each
from tests.core.encoders.test_model import CONFIGS, TEXTS
from tests.core.encoders.test_taps import assert_untouched, close, eager, made


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
