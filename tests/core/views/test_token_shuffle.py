"""Shuffled tokens, and that they are ConSERT's shuffled positions."""

from __future__ import annotations

import copy

import numpy as np
import torch

from core.encoders.packing import Tokens
from core.views.token_shuffle import shuffle_tokens
from tests.core.encoders.test_model import made

PAIR = Tokens((2, 10, 11, 12, 3, 13, 14, 15, 3), (0, 0, 0, 0, 0, 1, 1, 1, 1))
SPECIAL = frozenset({2, 3})


def test_words_move_with_their_types_and_special_tokens_stay() -> None:
    rng = np.random.default_rng(0)
    found = [shuffle_tokens(PAIR, SPECIAL, rng) for _ in range(200)]
    for tokens in found:
        assert [place for place, token in enumerate(tokens.ids) if token in SPECIAL] == [0, 4, 8]
        assert tokens.types is not None
        assert sorted(zip(tokens.ids, tokens.types, strict=True)) == sorted(zip(*PAIR, strict=True))
    assert {tokens.ids[1] for tokens in found} == {10, 11, 12, 13, 14, 15}
    assert all(type(token) is int for token in found[0].ids)


def test_a_text_without_types_or_words_is_fine() -> None:
    rng = np.random.default_rng(0)
    assert shuffle_tokens(Tokens((2, 3)), SPECIAL, rng) == Tokens((2, 3))
    assert shuffle_tokens(Tokens((2, 9, 8, 3)), SPECIAL, rng).types is None


@torch.no_grad()
def test_shuffled_tokens_are_shuffled_positions() -> None:
    encoder = copy.deepcopy(made("bert"))
    for weight in (p for p in encoder.parameters() if p.ndim == 2):
        weight.mul_(8)
    tokens = Tokens((2, 10, 11, 12, 13, 14, 3))
    shuffled = shuffle_tokens(tokens, SPECIAL, np.random.default_rng(1))
    positions = torch.tensor([[shuffled.ids.index(token) for token in tokens.ids]])
    expected = encoder.base(input_ids=torch.tensor([tokens.ids]), position_ids=positions).last_hidden_state[0, 0]
    found = encoder.pooled([shuffled])[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(encoder.pooled([tokens])[0], expected, atol=1e-3)
