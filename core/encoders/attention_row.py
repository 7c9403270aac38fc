"""The attention of [CLS], row 0 of a block's attention matrix, without recomputing projections.

A fused attention kernel does not expose its matrix. One row costs a product of one query per text with the keys that
the block has just computed, so hooks capture the two projections. Eager attention passes the whole matrix through its
dropout module, where a hook reads it before dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from core.encoders.families import Family
from core.encoders.packing import PackedBatch


@contextmanager
def attention_row(block: nn.Module, family: Family, heads: int, batch: PackedBatch) -> Iterator[Callable[[], Tensor]]:
    """Capture the [CLS] attention of `block` inside the context; after the block has run, the function returns it.

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
