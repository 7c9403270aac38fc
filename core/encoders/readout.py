"""Convert hidden states of packed rows to vectors per text: the pooled one, and the tokens most attended by [CLS]."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from core.encoders.packing import NO_TEXT, PackedBatch
from core.encoders.taps import TokenViews
from core.models.own_pooling import Pooling


class TokenSelection(NamedTuple):
    """Positions of the chosen tokens, the most attended first.

    Attributes:
        indices: [B, k] positions within the text, 0 where masked.
        view_mask: [B, k] bool, False if a text has fewer tokens to choose from.
    """

    indices: Tensor
    view_mask: Tensor


def pooled_vectors(hidden: Tensor, batch: PackedBatch, pooling: Pooling) -> Tensor:
    """Pool hidden states, [R, T, H] → [B, H] float32: the first token of each text, or the mean over its tokens."""
    tokens = hidden.flatten(0, 1)  # [R·T, H]
    if pooling == "cls":
        return tokens[batch.first].float()
    texts = len(batch.first)
    owners = batch.owners.flatten()  # [R·T]
    owners = torch.where(owners == NO_TEXT, texts, owners)  # padding is summed into an extra row
    sums = hidden.new_zeros(texts + 1, hidden.shape[-1], dtype=torch.float32)
    sums = sums.index_add(0, owners, tokens.float())[:texts]  # [B, H]
    return sums / batch.real.sum(1, keepdim=True)


def token_views(hidden: Tensor, attention: Tensor, special: Tensor, k: int, batch: PackedBatch) -> TokenViews:
    """Return the k most attended tokens of each text.

    Args:
        hidden: [R, T, H].
        attention: [B, heads, longest text], the row of [CLS] in text order.
        special: [R, T] bool, tokens that cannot be chosen.
    """
    chosen = topk_token_views(attention, batch.real, batch.by_text(special), k)
    vectors = hidden.flatten(0, 1)[batch.places.gather(1, chosen.indices)].float()  # [R·T, H] → [B, k, H]
    return TokenViews(vectors.masked_fill(~chosen.view_mask.unsqueeze(-1), 0.0), chosen.view_mask)


def topk_token_views(
    cls_attention: Tensor, attention_mask: Tensor, special_tokens_mask: Tensor, k: int
) -> TokenSelection:
    """Select the k tokens with the highest attention of [CLS], averaged over heads; ties go to the lowest position.

    Padding and special tokens are never chosen. If k is at least the number of other tokens, all of them are chosen and
    the selection has no effect.

    Args:
        cls_attention: [B, heads, T] or [B, T], the row of [CLS].
        attention_mask: [B, T], true or 1 at tokens.
        special_tokens_mask: [B, T], true or 1 at special tokens.
        k: ≥ 1; may exceed T.
    Raises: ValueError naming the argument, its value and the expected values.
    """
    _check(cls_attention, attention_mask, special_tokens_mask, k)
    with torch.no_grad():
        attention = cls_attention.float()
        if attention.ndim == 3:
            attention = attention.mean(1)  # [B, heads, T] → [B, T]
        candidates = attention_mask.bool() & ~special_tokens_mask.bool()  # [B, T]
        order = attention.masked_fill(~candidates, -torch.inf).sort(dim=1, descending=True, stable=True).indices[:, :k]
        view_mask = candidates.gather(1, order)
        missing = (0, k - order.shape[1])  # [B, min(k, T)] → [B, k]
        indices = torch.nn.functional.pad(order.masked_fill(~view_mask, 0), missing)
        return TokenSelection(indices, torch.nn.functional.pad(view_mask, missing))


def _check(cls_attention: Tensor, attention_mask: Tensor, special_tokens_mask: Tensor, k: int) -> None:
    if k < 1:
        raise ValueError(f"k = {k}: expected at least 1")
    shape = tuple(cls_attention.shape)
    if len(shape) not in (2, 3):
        raise ValueError(f"cls_attention = {list(shape)}: expected a shape [B, heads, T] or [B, T]")
    for name, mask in (("attention_mask", attention_mask), ("special_tokens_mask", special_tokens_mask)):
        if tuple(mask.shape) != (shape[0], shape[-1]):
            raise ValueError(f"{name} = {list(mask.shape)}: expected the shape {[shape[0], shape[-1]]}")
