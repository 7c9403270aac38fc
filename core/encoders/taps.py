"""Outputs of a forward pass: taps, pooled vectors, the tokens most attended by [CLS], and the attention of [CLS].

The attention of [CLS] is row 0 of a block's attention matrix. A fused kernel does not expose its matrix. One row costs
only a product of one query per text with the keys that the block has just computed, so hooks capture the two
projections. Eager attention passes the whole matrix through its dropout module, where a hook reads it before dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.encoders.packing import NO_TEXT, PackedBatch
from core.models.families import Family
from core.models.own_pooling import Pooling

# (output of the embedding layer [R, T, H], owners [R, T], special [R, T] bool) → the modified output. Owners are text
# numbers of the whole batch, −1 for padding; special marks tokens that the tokenizer adds and padding. In ELECTRA, the
# embedding width may be less than H. Called once per group of rows, so only once if texts share rows.
EmbeddingChange = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Taps:
    """The outputs to return. Layer l is the output of block l, 1 to L, and its attention is that of the block.

    Layer 0, the output of the embeddings, has pooled vectors only.

    Attributes:
        layers: layers whose pooled vectors are returned; empty means the last one.
        tokens: (layer, k) pairs, k ≥ 1; each returns the block's outputs at the k tokens that [CLS] attends to most.
        attention: blocks whose attention of [CLS] is returned.
    """

    layers: tuple[int, ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    attention: tuple[int, ...] = ()


class TokenViews(NamedTuple):
    """Outputs of a block at chosen tokens, the most attended first.

    Attributes:
        vectors: [B, K, H] float32, zeros where masked.
        mask: [B, K] bool, False if a text has fewer than K tokens that are not special.
    """

    vectors: Tensor
    mask: Tensor


class Encoded(NamedTuple):
    """The tapped outputs, in the order of the texts.

    Attributes:
        pooled: layer → [B, H] float32.
        tokens: layer → vectors of the chosen tokens; gradients flow through the vectors, not through the choice.
        attention: layer → [B, heads, longest text] float32, 0 beyond a text's end; without gradient.
    """

    pooled: dict[int, Tensor]
    tokens: dict[int, TokenViews]
    attention: dict[int, Tensor]


def in_text_order(parts: Sequence[Encoded], order: Sequence[int]) -> Encoded:
    """Concatenate groups of texts in batch order.

    Args:
        order: each text's position in the batch, in the order of the groups.
    """
    in_order = list(order) == list(range(len(order)))  # true if texts share rows

    def joined(tensors: Sequence[Tensor]) -> Tensor:
        together = tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))
        return together if in_order else together[torch.tensor(order, device=together.device).argsort()]

    first = parts[0]
    pooled = {layer: joined([part.pooled[layer] for part in parts]) for layer in first.pooled}
    tokens = {
        layer: TokenViews(*(joined(tensors) for tensors in zip(*(part.tokens[layer] for part in parts), strict=True)))
        for layer in first.tokens
    }
    longest = max((row.shape[-1] for part in parts for row in part.attention.values()), default=0)
    attention = {
        layer: joined([F.pad(row, (0, longest - row.shape[-1])) for row in (part.attention[layer] for part in parts)])
        for layer in first.attention
    }
    return Encoded(pooled, tokens, attention)


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
    if k < 1:
        raise ValueError(f"k = {k}: expected at least 1")
    shape = tuple(cls_attention.shape)
    if len(shape) not in (2, 3):
        raise ValueError(f"cls_attention = {list(shape)}: expected a shape [B, heads, T] or [B, T]")
    for name, mask in (("attention_mask", attention_mask), ("special_tokens_mask", special_tokens_mask)):
        if tuple(mask.shape) != (shape[0], shape[-1]):
            raise ValueError(f"{name} = {list(mask.shape)}: expected the shape {[shape[0], shape[-1]]}")
    with torch.no_grad():
        attention = cls_attention.float()
        if attention.ndim == 3:
            attention = attention.mean(1)  # [B, heads, T] → [B, T]
        candidates = attention_mask.bool() & ~special_tokens_mask.bool()  # [B, T]
        order = attention.masked_fill(~candidates, -torch.inf).sort(dim=1, descending=True, stable=True).indices[:, :k]
        view_mask = candidates.gather(1, order)
        missing = (0, k - order.shape[1])  # [B, min(k, T)] → [B, k]
        indices = F.pad(order.masked_fill(~view_mask, 0), missing)
        return TokenSelection(indices, F.pad(view_mask, missing))


@contextmanager
def attention_row(block: nn.Module, family: Family, heads: int, batch: PackedBatch) -> Iterator[Callable[[], Tensor]]:
    """Capture the [CLS] attention of `block` inside the context; the yielded function returns it after the block ran.

    The row is [B, heads, longest text] float32 in text order: the softmax over the text's own tokens, without
    attention dropout and without gradient, 0 beyond a text's end.
    """
    caught: dict[str, Tensor] = {}

    def catch(name: str) -> Callable[..., None]:
        def hook(_module: Any, _inputs: Any, output: Tensor) -> None:
            caught[name] = output.detach()

        return hook

    def catch_row(_module: Any, inputs: tuple[Tensor, ...]) -> None:
        # Keep only the row, so that the matrix can be freed after dropout.
        caught["row"] = _row_of_matrix(inputs[0].detach(), batch)

    # Look modules up at each call: an adapter may have replaced a projection.
    if family.attention_dropout is not None:
        with block.get_submodule(family.attention_dropout).register_forward_pre_hook(catch_row):
            yield lambda: caught.pop("row")
        return
    query, key = block.get_submodule(family.query), block.get_submodule(family.key)
    with query.register_forward_hook(catch("query")), key.register_forward_hook(catch("key")):
        yield lambda: _row_of_projections(caught.pop("query"), caught.pop("key"), heads, batch)


@torch.no_grad()
def _row_of_projections(query: Tensor, key: Tensor, heads: int, batch: PackedBatch) -> Tensor:
    with torch.autocast(query.device.type, enabled=False):
        # If the block computes first tokens only, there is already one query per text.
        queries = (query if query.ndim == 2 else query.flatten(0, 1)[batch.first]).float()  # [B, H]
        own = queries[batch.owners.flatten().clamp(min=0)]  # [R·T, H], the query of each token's text
        products = (own * key.flatten(0, 1)).unflatten(-1, (heads, -1))  # [R·T, H] → [R·T, heads, d]
        scores = products.sum(-1) * products.shape[-1] ** -0.5  # [R·T, heads]
        by_text = scores[batch.places.clamp(min=0)].transpose(1, 2)  # [B, T, heads] → [B, heads, T]
        return by_text.masked_fill(~batch.real.unsqueeze(1), -torch.inf).softmax(-1)


@torch.no_grad()
def _row_of_matrix(matrix: Tensor, batch: PackedBatch) -> Tensor:
    row_length = matrix.shape[-1]
    rows = matrix[batch.first // row_length, :, batch.first % row_length].float()  # [R, heads, T, T] → [B, heads, T]
    columns = (batch.places.clamp(min=0) % row_length).unsqueeze(1)  # [B, 1, longest text]
    by_text = rows.gather(2, columns.expand(-1, rows.shape[1], -1))  # [B, heads, longest text]
    return by_text.masked_fill(~batch.real.unsqueeze(1), 0.0)
