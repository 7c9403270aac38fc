"""Hidden states of packed rows to vectors per text."""

from __future__ import annotations

import torch
from torch import Tensor

from core.encoders.packing import NO_TEXT, PackedBatch
from core.encoders.taps import TokenViews
from core.encoders.topk_tokens import topk_token_views
from core.models.own_pooling import Pooling


def pooled_vectors(hidden: Tensor, batch: PackedBatch, pooling: Pooling) -> Tensor:
    """[R, T, H] → [B, H] float32: each text's first token, or the mean of all its tokens."""
    tokens = hidden.flatten(0, 1)  # [R·T, H]
    if pooling == "cls":
        return tokens[batch.first].float()
    texts = len(batch.first)
    owners = batch.owners.flatten()  # [R·T]
    owners = torch.where(owners == NO_TEXT, texts, owners)  # padding is summed into a row of its own
    sums = hidden.new_zeros(texts + 1, hidden.shape[-1], dtype=torch.float32)
    sums = sums.index_add(0, owners, tokens.float())[:texts]  # [B, H]
    return sums / batch.real.sum(1, keepdim=True)


def token_views(hidden: Tensor, attention: Tensor, special: Tensor, k: int, batch: PackedBatch) -> TokenViews:
    """The k most attended tokens of each text.

    Args:
        hidden: [R, T, H].
        attention: [B, heads, longest text], the row of [CLS] in text order.
        special: [R, T] bool, tokens that are not to be chosen.
    """
    chosen = topk_token_views(attention, batch.real, batch.by_text(special), k)
    vectors = hidden.flatten(0, 1)[batch.places.gather(1, chosen.indices)].float()  # [R·T, H] → [B, k, H]
    return TokenViews(vectors.masked_fill(~chosen.view_mask.unsqueeze(-1), 0.0), chosen.view_mask)
