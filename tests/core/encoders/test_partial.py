"""A pass that begins after a block, against the whole pass, for every family."""

from __future__ import annotations

import torch

from core.encoders.taps import Taps
from tests.cases import each
from tests.core.encoders.test_model import CONFIGS, TEXTS
from tests.core.encoders.test_taps import assert_same_gradients, assert_untouched, close, gradients, hidden, made


@each("blocks", [1, 3])
@each("model_type", CONFIGS)
def test_lower_gives_each_texts_hidden_states(model_type: str, blocks: int) -> None:
    encoder = made(model_type)
    found = encoder.lower(TEXTS, blocks)
    for states, text in zip(found, TEXTS, strict=True):
        assert not states.requires_grad
        assert states.untyped_storage().nbytes() == states.numel() * states.element_size()
        with torch.no_grad():
            close(states, hidden(encoder, text)[blocks])
    assert_untouched(encoder)


@each(("start", "pooling"), [(1, "cls"), (2, "mean")])
@each("model_type", CONFIGS)
def test_the_rest_of_a_pass_has_the_same_vectors_and_gradients(model_type: str, start: int, pooling: str) -> None:
    encoder = made(model_type, pooling)
    taps = Taps(layers=(3,), tokens=((start + 1, 3),))
    whole = encoder.encode(TEXTS, taps)
    # Computed text by text. The pass below reads them in another order and in other batches.
    states = [encoder.lower([text], start)[0] for text in TEXTS]

    # Parameters that blocks share, such as relative positions, are frozen like the lower blocks.
    encoder.requires_grad_(False)
    encoder.blocks[start:].requires_grad_(True)
    expected = gradients(encoder, encoder.encode(TEXTS, taps).pooled[3].square().sum())
    for module in (encoder.base.embeddings, *encoder.blocks[:start]):
        for parameter in module.parameters():
            parameter.data.fill_(torch.nan)  # any use would spread the NaN
    rest = encoder.encode(TEXTS, taps, lower=states, start=start)

    close(rest.pooled[3], whole.pooled[3])
    close(rest.tokens[start + 1].vectors, whole.tokens[start + 1].vectors)
    assert torch.equal(rest.tokens[start + 1].mask, whole.tokens[start + 1].mask)
    found = gradients(encoder, rest.pooled[3].square().sum())
    assert len(found) > 10
    assert_same_gradients(found, expected)
    assert_untouched(encoder)
