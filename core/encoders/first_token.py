"""The last block for the first tokens alone: with [CLS] pooling nobody reads its other outputs.

Keys and values are still taken from every token; queries, feed-forward and normalisation are computed for one token per
text. Same vectors and gradients as the whole block (tested), for a sixth of its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from core.encoders.partial import replaced_forward


@contextmanager
def first_tokens_only(block: Any, first: Tensor) -> Iterator[None]:
    """Inside, a BERT-like block gives [B, 1, H], the outputs at `first`, instead of [R, T, H].

    Args:
        block: has attention.self (query, key, value), attention.output and feed_forward_chunk.
        first: [B] indices into the flattened [R·T] tokens.
    """

    def forward(hidden: Tensor, attention_mask: Tensor, *_: Any, **__: Any) -> Tensor:
        return _first_token_outputs(block, hidden, attention_mask, first)

    with replaced_forward(block, forward):
        yield


def _first_token_outputs(block: Any, hidden: Tensor, mask: Tensor, first: Tensor) -> Tensor:
    attention = block.attention.self
    heads = (attention.num_attention_heads, attention.attention_head_size)
    row, place = first // hidden.shape[1], first % hidden.shape[1]  # [B] each
    chosen = hidden.flatten(0, 1).index_select(0, first)  # [B, H]
    query = attention.query(chosen).unflatten(-1, heads).unsqueeze(2)  # [B, heads, 1, d]
    key = attention.key(hidden).unflatten(-1, heads).index_select(0, row).transpose(1, 2)  # [B, heads, T, d]
    value = attention.value(hidden).unflatten(-1, heads).index_select(0, row).transpose(1, 2)
    context = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask[row, :, place].unsqueeze(2),  # [B, 1, 1, T]
        dropout_p=attention.dropout.p if attention.training else 0.0,
        scale=attention.scaling,
    )
    attended = block.attention.output(context.squeeze(2).flatten(1), chosen)  # [B, H]
    return block.feed_forward_chunk(attended).unsqueeze(1)
