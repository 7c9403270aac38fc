"""What one forward pass hands out besides the last pooled vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# (output of the embedding layer [R, T, H], owners [R, T], special [R, T] bool) → the changed output. Owners are numbers
# of texts in the whole batch, −1 for padding; special are the tokens that the tokenizer adds. ELECTRA's embedding layer
# is as wide as its embeddings, which may be less than H. Called once per group of rows: once where texts share rows.
EmbeddingChange = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Taps:
    """Which vectors are wanted. Layer l is the output of block l, 1 to L, and its attention is that block's.

    Attributes:
        layers: whose pooled vectors are wanted; empty means the last one.
        tokens: (layer, k) pairs: the outputs of that block at the k tokens that [CLS] attends to most in it.
        attention: blocks whose attention of [CLS] is wanted.
    """

    layers: tuple[int, ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    attention: tuple[int, ...] = ()

    def checked(self, blocks: int, start: int) -> Taps:
        """With the last layer filled in.

        Raises: ValueError for a layer that is not computed (start + 1 to blocks), one tapped twice, or k below 1.
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
        mask: [B, K] bool, False where a text has fewer than K tokens that are not special.
    """

    vectors: Tensor
    mask: Tensor


class Encoded(NamedTuple):
    """What the taps gave, in the order of the texts.

    Attributes:
        pooled: layer → [B, H] float32.
        tokens: layer → the chosen tokens' vectors; gradients flow through them and not through the choice.
        attention: layer → [B, heads, longest text] float32, 0 behind a text's end; without gradient.
    """

    pooled: dict[int, Tensor]
    tokens: dict[int, TokenViews]
    attention: dict[int, Tensor]


def in_text_order(parts: Sequence[Encoded], order: Sequence[int]) -> Encoded:
    """Groups of texts put together; `order` holds the number that each text, in its turn, has in the batch."""
    in_order = list(order) == list(range(len(order)))  # texts that share rows are

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
