"""ConSERT's views change the right entries, the right number of them and nothing else. Tokens are shuffled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from core.encoders.packing import Tokens
from core.views.embedding import (
    Embedded,
    adversarial_step,
    embedding_dropout,
    feature_cutoff,
    shuffle_tokens,
    token_cutoff,
)
from tests.cases import each
from tests.core.encoders.test_model import made

# Rows of 12 tokens: texts 0 (7 tokens) and 2 (4), text 1 (10), text 3 (only 2 special ones) and 4 (3).
OWNERS = torch.tensor([[0] * 7 + [2] * 4 + [-1], [1] * 10 + [-1] * 2, [3] * 2 + [4] * 3 + [-1] * 7])
SPECIAL = OWNERS == -1
for r, c in [(0, 0), (0, 6), (0, 7), (0, 10), (1, 0), (1, 9), (2, 0), (2, 1), (2, 2), (2, 4)]:
    SPECIAL[r, c] = True
WORDS = {0: 5, 1: 8, 2: 2, 3: 0, 4: 1}
CHOSEN = [1, 0, 3, 4]  # without text 2

PAIR = Tokens((2, 10, 11, 12, 3, 13, 14, 15, 3), (0, 0, 0, 0, 0, 1, 1, 1, 1))
SPECIAL_IDS = frozenset({2, 3})


def embeddings(width: int = 10) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(3, 12, width)


def embedded(embeddings: Tensor, gradient: Tensor | None = None, texts: Sequence[int] = CHOSEN) -> Embedded:
    return Embedded(embeddings, OWNERS, SPECIAL, texts, gradient)


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "token": lambda e: token_cutoff(embedded(e), {"rate": 0.4}),
    "feature": lambda e: feature_cutoff(embedded(e), {"rate": 0.4}),
    "dropout": lambda e: embedding_dropout(embedded(e), {"rate": 0.4}),
    "step": lambda e: adversarial_step(embedded(e, torch.ones_like(e)), {"epsilon": 0.4}),
}


@each("view", VIEWS)
def test_other_texts_come_back_bit_for_bit_and_gradients_flow_through_what_is_kept(view: str) -> None:
    given = embeddings()
    given[0, 8, 3] = torch.inf
    changed = VIEWS[view](given)
    others = (OWNERS == 2) | (OWNERS == -1)
    assert torch.equal(changed[others], given[others])
    assert not torch.equal(changed[OWNERS == 0], given[OWNERS == 0])
    given = embeddings().requires_grad_()
    changed = VIEWS[view](given)
    changed.sum().backward()
    assert torch.equal(given.grad != 0, changed != 0)


@each("view", ["token", "feature", "dropout"])
def test_chance_is_torchs_own(view: str) -> None:
    given = embeddings()
    state = torch.get_rng_state()
    first, second = VIEWS[view](given), VIEWS[view](given)
    torch.set_rng_state(state)
    assert torch.equal(VIEWS[view](given), first)
    assert not torch.equal(first, second)


@each("rate", [0.05, 0.15, 0.4, 0.9])
def test_token_cutoff_zeroes_a_share_of_the_words(rate: float) -> None:
    given = embeddings()
    hit = torch.zeros(3, 12)
    for _ in range(300):
        changed = token_cutoff(embedded(given), {"rate": rate})
        zeroed = (changed == 0).all(-1)
        assert torch.equal(changed[~zeroed], given[~zeroed])
        assert not zeroed[SPECIAL].any()
        hit += zeroed
        for text in CHOSEN:
            expected = max(1, round(rate * WORDS[text])) if WORDS[text] else 0
            assert int(zeroed[OWNERS.eq(text)].sum()) == expected
    words = (OWNERS == 1) & ~SPECIAL
    share = max(1, round(rate * 8)) / 8
    assert (hit[words] / 300 - share).abs().max() < 0.15  # uniform over the words


@each("rate", [0.01, 0.2, 0.55])
def test_feature_cutoff_zeroes_the_same_features_in_all_tokens_of_a_text(rate: float) -> None:
    given = embeddings(20)
    changed = feature_cutoff(embedded(given), {"rate": rate})
    cut = []
    for text in CHOSEN:
        zeroed = changed[OWNERS.eq(text)] == 0  # [tokens, H]
        assert torch.equal(zeroed, zeroed[:1].expand_as(zeroed))
        assert int(zeroed[0].sum()) == max(1, round(rate * 20))
        assert torch.equal(changed[OWNERS.eq(text)][~zeroed], given[OWNERS.eq(text)][~zeroed])
        cut.append(tuple(zeroed[0].tolist()))
    assert len(set(cut)) > 1


def test_dropout_zeroes_its_share_and_keeps_the_mean() -> None:
    given = torch.ones(3, 12, 2000)
    changed = embedding_dropout(embedded(given), {"rate": 0.2})[OWNERS == 1]
    assert set(changed.unique().tolist()) == {0.0, 1.25}
    assert abs(float((changed == 0).float().mean()) - 0.2) < 0.02


def test_the_step_follows_the_sign_at_a_share_of_the_norm() -> None:
    given, gradient = embeddings(), torch.randn(3, 12, 10)
    step = adversarial_step(embedded(given, gradient), {"epsilon": 0.01}) - given
    inside = (OWNERS >= 0) & (OWNERS != 2)
    torch.testing.assert_close(step.norm(dim=-1)[inside], 0.01 * given.norm(dim=-1)[inside], rtol=1e-3, atol=1e-6)
    assert torch.equal(step[inside].sign(), gradient[inside].sign())
    assert torch.equal(adversarial_step(embedded(given, torch.zeros_like(given)), {"epsilon": 0.01}), given)


def test_a_rate_of_0_changes_nothing() -> None:
    given = embedded(embeddings())
    for view in (token_cutoff, feature_cutoff, embedding_dropout):
        assert view(given, {"rate": 0.0}) is given.embeddings


def test_words_move_with_their_types_and_special_tokens_stay() -> None:
    rng = np.random.default_rng(0)
    found = [shuffle_tokens(PAIR, SPECIAL_IDS, rng) for _ in range(200)]
    for tokens in found:
        assert [place for place, token in enumerate(tokens.ids) if token in SPECIAL_IDS] == [0, 4, 8]
        assert tokens.types is not None
        assert sorted(zip(tokens.ids, tokens.types, strict=True)) == sorted(zip(*PAIR, strict=True))
    assert {tokens.ids[1] for tokens in found} == {10, 11, 12, 13, 14, 15}
    assert all(type(token) is int for token in found[0].ids)
    assert shuffle_tokens(Tokens((2, 3)), SPECIAL_IDS, rng) == Tokens((2, 3))
    assert shuffle_tokens(Tokens((2, 9, 8, 3)), SPECIAL_IDS, rng).types is None


@torch.no_grad()
def test_shuffled_tokens_are_shuffled_positions() -> None:
    encoder = copy.deepcopy(made("bert"))
    for weight in (p for p in encoder.parameters() if p.ndim == 2):
        weight.mul_(8)
    tokens = Tokens((2, 10, 11, 12, 13, 14, 3))
    shuffled = shuffle_tokens(tokens, SPECIAL_IDS, np.random.default_rng(1))
    positions = torch.tensor([[shuffled.ids.index(token) for token in tokens.ids]])
    expected = encoder.base(input_ids=torch.tensor([tokens.ids]), position_ids=positions).last_hidden_state[0, 0]
    found = encoder.pooled([shuffled])[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(encoder.pooled([tokens])[0], expected, atol=1e-3)
