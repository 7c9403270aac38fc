"""ConSERT's views: shuffled tokens, or a modified output of the embedding layer for some texts of a batch.

Each function on embeddings takes the output of the embedding layer and the settings of its view, within their bounds.
It returns the input [R, T, H] of the encoder's blocks. Tokens of other texts are returned unchanged. Random numbers
come from torch's global generator of the device, whose state a run saves.

Source: Yan et al. 2021, arXiv:2105.11741, section 3.2.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.encoders.packing import Tokens
from core.parameters import number


class Embedded(NamedTuple):
    """The input of a view between the embedding layer and the first block.

    Attributes:
        embeddings: [R, T, H], the output of the embedding layer.
        owners: [R, T], the number of the text that a token belongs to, −1 for padding.
        special: [R, T] bool, tokens such as [CLS].
        texts: numbers of the texts to change, at least one.
        gradient: [R, T, H], of the contrastive loss with respect to the embeddings, for a view that uses it.
    """

    embeddings: Tensor
    owners: Tensor
    special: Tensor
    texts: Sequence[int]
    gradient: Tensor | None = None


def shuffle_tokens(tokens: Tokens, special_ids: Collection[int], rng: np.random.Generator) -> Tokens:
    """Shuffle the tokens that are not special, with their types; special tokens keep their positions.

    ConSERT permutes position ids and keeps the tokens. For attention with absolute positions, permuting the tokens
    gives the same pairs of token and position (tested). It also works for encoders with relative positions. ConSERT's
    code moves [CLS] too; here it stays, because its vector represents the text.

    Source: Yan et al. 2021, arXiv:2105.11741, section 3.2.
    """
    movable = np.array([place for place, token in enumerate(tokens.ids) if token not in special_ids], dtype=np.int64)
    order = np.arange(len(tokens.ids))
    order[movable] = rng.permutation(movable)
    ids = tuple(tokens.ids[place] for place in order)
    return Tokens(ids, None if tokens.types is None else tuple(tokens.types[place] for place in order))


def token_cutoff(given: Embedded, settings: Settings) -> Tensor:
    """Zero a share `rate` of each text's tokens that are not special, rounded; at least one token if it has any."""
    if (rate := number(settings, "rate")) == 0:
        return given.embeddings
    inside, _ = _text_mask(given.owners, given.texts)
    candidates = (inside & ~given.special).flatten().nonzero().squeeze(1)  # [n], into the flattened [R·T] tokens
    owner = given.owners.flatten()[candidates]
    # Tokens in random order, then sorted by text: the stable sort keeps the order random within each text.
    shuffled = torch.rand(len(candidates), device=given.embeddings.device).argsort()
    order = shuffled[owner[shuffled].argsort(stable=True)]
    lengths = owner.bincount()  # number of candidates of each text
    rank = torch.arange(len(order), device=order.device) - (lengths.cumsum(0) - lengths)[owner[order]]
    cut = order[rank < (lengths * rate).round().clamp(min=1)[owner[order]]]
    zeroed = torch.zeros_like(inside).flatten().index_fill(0, candidates[cut], True).view_as(inside)
    return given.embeddings.masked_fill(zeroed.unsqueeze(-1), 0.0)


def feature_cutoff(given: Embedded, settings: Settings) -> Tensor:
    """Zero a share `rate` of the H features of each text, in all of its tokens, rounded; at least one feature."""
    if (rate := number(settings, "rate")) == 0:
        return given.embeddings
    inside, place = _text_mask(given.owners, given.texts)
    width = given.embeddings.shape[-1]
    drawn = torch.rand(len(set(given.texts)), width, device=given.embeddings.device)
    cut = drawn.argsort(1).argsort(1) < max(1, round(rate * width))  # [texts, H]
    return given.embeddings.masked_fill(cut[place] & inside.unsqueeze(-1), 0.0)


def embedding_dropout(given: Embedded, settings: Settings) -> Tensor:
    """Zero each value of the texts' tokens with probability `rate` and divide the others by 1 − rate."""
    if (rate := number(settings, "rate")) == 0:
        return given.embeddings
    inside, _ = _text_mask(given.owners, given.texts)
    dropped = torch.rand(given.embeddings.shape, device=given.embeddings.device) < rate
    kept = given.embeddings.masked_fill(dropped, 0.0) / (1 - rate)
    return torch.where(inside.unsqueeze(-1), kept, given.embeddings)


def adversarial_step(given: Embedded, settings: Settings) -> Tensor:
    """Add the adversarial step ε·‖e‖·sign(g)/√H to each token; its norm is ε times that of the embedding.

    The step is a constant: no gradient flows through it. A gradient of 0 adds nothing.
    """
    assert given.gradient is not None
    inside, _ = _text_mask(given.owners, given.texts)
    norms = given.embeddings.detach().norm(dim=-1, keepdim=True)  # [R, T, 1]
    step = number(settings, "epsilon") * norms * given.gradient.sign() / given.embeddings.shape[-1] ** 0.5
    return torch.where(inside.unsqueeze(-1), given.embeddings + step, given.embeddings)


def _text_mask(owners: Tensor, texts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return a mask of the tokens of `texts`, [R, T] bool, and each token's index into the sorted `texts`, [R, T]."""
    chosen = sorted(set(texts))
    wanted = torch.tensor(chosen, device=owners.device)
    number = torch.searchsorted(wanted, owners.contiguous()).clamp(max=len(chosen) - 1)
    return wanted[number] == owners, number
