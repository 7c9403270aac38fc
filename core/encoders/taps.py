"""Outputs of a forward pass besides the last pooled vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# (output of the embedding layer [R, T, H], owners [R, T], special [R, T] bool) → the modified output. Owners are text
# numbers of the whole batch, −1 for padding; special marks tokens that the tokenizer adds and padding. In ELECTRA, the
# embedding width may be less than H. Called once per group of rows, so only once if texts share rows.
EmbeddingChange = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Taps:
    """The outputs to return. Layer l is the output of block l, 1 to L, and its attention is that of the block.

    Attributes:
        layers: layers whose pooled vectors are returned; empty means the last one.
        tokens: (layer, k) pairs: the outputs of that block at the k tokens that [CLS] attends to most in it.
        attention: blocks whose attention of [CLS] is returned.
    """

    layers: tuple[int, ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    attention: tuple[int, ...] = ()

    def checked(self, blocks: int, start: int) -> Taps:
        """Validate the taps and fill in the last layer.

        Raises: ValueError for a layer outside start + 1 to blocks, one tapped twice, or k below 1.
        """
        layers = self.layers or (blocks,)
        token_layers = [layer for layer, _ in self.tokens]
        for name, numbers in (("layers", layers), ("tokens", token_layers), ("attention", self.attention)):
            for layer in numbers:
                if not start < layer <= blocks:
                    raise ValueError(f"{name} = {layer}: expected a layer from {start + 1} to {blocks}")
            if len(set(numbers)) < len(numbers):
                raise ValueError(f"{name} = {list(numbers)}: expected each layer once")
        for layer, k in self.tokens:
            if k < 1:
                raise ValueError(f"k = {k}: expected at least 1 token of layer {layer}")
        return Taps(layers, self.tokens, self.attention)


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
    """Concatenate groups of texts in batch order. Args: order: batch number of each text, as the groups list them."""
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
