"""Gradient of each term of the objective on weights that all terms reach, and the cosine between them.

Terms may read different outputs of the encoder: a token-level term never reads the pooled vector, and some views are
read by one term only. On such outputs the gradients would be orthogonal by construction. They are therefore compared on
the trainable weights of the highest block that every term reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from core.encoders.model import Encoder
from core.events import SHARED_BLOCK, SHARED_COSINE, OfTerm
from core.losses.evaluate import ObjectiveValue, Term

# A comparison propagates each term through one block again. At every fifth step it costs less than 5 % of the time.
EVERY_STEPS = 5


class SharedGradients:
    """Gradients of the weighted terms on the trainable weights of one block, summed over micro-batches.

    The caller propagates the gradients of the vectors; this class only measures.
    """

    def __init__(
        self, block: int, weights: Sequence[nn.Parameter], asked: Mapping[str, Sequence[Tensor | None]]
    ) -> None:
        """Start without gradients.

        Args:
            block: number of the block, from 1.
            asked: gradient of each term on each output of the encoder, [P, B, ...]; None for an output that it does not
                read.
        """
        self._block, self.weights, self._asked = block, list(weights), asked
        self.sums: dict[str, list[Tensor | None]] = {key: [None] * len(weights) for key in asked}

    def add(self, vectors: Sequence[Tensor], texts: slice = slice(None)) -> None:
        """Propagate the terms' gradients on the outputs of some texts of the batch into the block.

        Args:
            vectors: the outputs, with their graph, which is retained.
            texts: the texts of these outputs within the batch.
        """
        for key, gradients in self._asked.items():
            pairs = [
                (vector, gradient[:, texts])
                for vector, gradient in zip(vectors, gradients, strict=True)
                if gradient is not None and vector.requires_grad
            ]
            if not pairs:
                continue
            outputs, given = zip(*pairs, strict=True)
            found = torch.autograd.grad(outputs, self.weights, given, retain_graph=True, allow_unused=True)
            sums = self.sums[key]
            for place, gradient in enumerate(found):
                before = sums[place]
                if gradient is not None:
                    sums[place] = gradient if before is None else before + gradient

    def measures(self) -> dict[str, Tensor]:
        """Return the norm of each term's gradient, the cosine of the first two, and the block.

        The cosine is NaN if one of the norms is 0.
        """
        norms = {key: _product(sums, sums).sqrt() for key, sums in self.sums.items()}
        first, second = list(self.sums)[:2]
        cosine = _product(self.sums[first], self.sums[second]) / norms[first] / norms[second]
        return {
            **{OfTerm.SHARED_GRADIENT.of(key): norm for key, norm in norms.items()},
            SHARED_COSINE: cosine,
            SHARED_BLOCK: torch.tensor(float(self._block)),
        }


def _product(first: Sequence[Tensor | None], second: Sequence[Tensor | None]) -> Tensor:
    """Compute the scalar product over all weights. None is a gradient of 0."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    return torch.stack([torch.dot(a.flatten(), b.flatten()) for a, b in pairs]).sum() if pairs else torch.zeros(())


def shared_gradients(
    value: ObjectiveValue,
    terms: Sequence[Term],
    reach: Mapping[str, int],
    encoder: Encoder,
    vectors: Sequence[Tensor],
    frozen: int,
) -> SharedGradients | None:
    """Return the gradients to compare in this step; None if fewer than two terms reach a trainable block.

    Args:
        reach: the highest block that each term reads.
        vectors: outputs of the encoder that the terms have read, such as pooled vectors [P, B, H].
        frozen: number of lowest blocks that are frozen.
    """
    moving = [term for term in terms if term.weight > 0 and reach[term.key] > frozen]
    if len(moving) < 2:
        return None
    block = min(reach[term.key] for term in moving)
    weights = [weight for weight in encoder.blocks[block - 1].parameters() if weight.requires_grad]
    asked = {
        term.key: torch.autograd.grad(
            term.weight * value.parts[term.key], list(vectors), retain_graph=True, allow_unused=True
        )
        for term in moving
    }
    return SharedGradients(block, weights, asked)
