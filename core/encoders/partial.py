"""Forward passes through some of the blocks, or through the last block for first tokens only.

A partial pass takes the output of the lower blocks as given and skips the upper ones. With [CLS] pooling, only the
first tokens of the last block's output are used. Keys and values still come from every token, but queries, feed-forward
and normalisation are computed for one token per text. Vectors and gradients equal those of the whole block (tested),
at a sixth of its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from core.models.families import Family


@contextmanager
def replaced_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Run `forward` in place of the module's own inside the context; hooks stay active.

    Gradient checkpointing wraps the class's forward, so `forward` is neither checkpointed nor recomputed.
    """
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def convolution(base: nn.Module, family: Family) -> nn.Module | None:
    """Return the convolution after the first block of larger DeBERTa-v2 models, whose output is that of layer 1."""
    parent = base.get_submodule(family.blocks.rpartition(".")[0])
    return getattr(parent, "conv", None)


def output_module(base: nn.Module, family: Family, layer: int) -> nn.Module:
    """Return the module whose (first) output is that of layer 1..L, `hidden_states[layer]` in transformers."""
    behind = convolution(base, family) if layer == 1 else None
    return behind or base.get_submodule(f"{family.blocks}.{layer - 1}")


@contextmanager
def only_blocks(base: Any, family: Family, start: int, top: int, states: Tensor | None) -> Iterator[None]:
    """Restrict `base` to blocks start + 1 to top inside the context.

    Args:
        start: the block whose outputs are `states`; 0 computes the embeddings too.
        top: the last block to compute; its output is the last hidden state.
        states: [R, T, H], required if start > 0.
    """
    blocks = base.get_submodule(family.blocks)

    def untouched(hidden: Tensor, *_: Any, **__: Any) -> Any:
        return (hidden, None) if family.tuple_blocks else hidden

    with ExitStack() as stack:
        for block in [*blocks[:start], *blocks[top:]]:
            stack.enter_context(replaced_forward(block, untouched))
        if start > 0:
            stack.enter_context(replaced_forward(base.embeddings, lambda *_, **__: states))
            if hasattr(base, "embeddings_project"):  # ELECTRA, between the embeddings and the first block
                stack.enter_context(replaced_forward(base.embeddings_project, lambda hidden: hidden))
            if (behind := convolution(base, family)) is not None:
                stack.enter_context(replaced_forward(behind, lambda _embedded, hidden, _mask: hidden))
        yield


@contextmanager
def first_tokens_only(block: Any, first: Tensor) -> Iterator[None]:
    """Make a BERT-like block return [B, 1, H], the outputs at `first`, instead of [R, T, H] inside the context.

    Args:
        block: has attention.self (query, key, value), attention.output and feed_forward_chunk.
        first: [B] indices into the flattened [R·T] tokens.
    """
    attention = block.attention.self
    heads = (attention.num_attention_heads, attention.attention_head_size)

    def forward(hidden: Tensor, attention_mask: Tensor, *_: Any, **__: Any) -> Any:
        row, place = first // hidden.shape[1], first % hidden.shape[1]  # [B] each
        chosen = hidden.flatten(0, 1).index_select(0, first)  # [B, H]
        query = attention.query(chosen).unflatten(-1, heads).unsqueeze(2)  # [B, heads, 1, d]
        key = attention.key(hidden).unflatten(-1, heads).index_select(0, row).transpose(1, 2)  # [B, heads, T, d]
        value = attention.value(hidden).unflatten(-1, heads).index_select(0, row).transpose(1, 2)
        context = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=attention_mask[row, :, place].unsqueeze(2),  # [B, 1, 1, T]
            dropout_p=attention.dropout.p if attention.training else 0.0,
            scale=attention.scaling,
        )
        attended = block.attention.output(context.squeeze(2).flatten(1), chosen)  # [B, H]
        return block.feed_forward_chunk(attended).unsqueeze(1)

    with replaced_forward(block, forward):
        yield
