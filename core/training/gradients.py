"""What each term of the objective asks of the encoder's outputs, and whether the terms agree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.losses.objective import ObjectiveValue, Term


def output_gradients(value: ObjectiveValue, terms: Sequence[Term], vectors: Sequence[Tensor]) -> dict[str, Tensor]:
    """Norm of each weighted term's gradient on the encoder's outputs, and the cosine between the first two.

    Only the layers behind the outputs are walked, so this costs next to nothing beside the encoder.

    Args:
        vectors: what the encoder handed out, such as pooled vectors [P, B, H].
    Returns: "pooled_grad.<term>" for every term that moves something, and "pooled_cosine" when two do.
    """
    gradients = {
        term.key: _gradient(term.weight * value.parts[term.key], vectors)
        for term in terms
        if term.weight > 0 and value.parts[term.key].requires_grad
    }
    measures = {f"pooled_grad.{name}": gradient.norm() for name, gradient in gradients.items()}
    if len(gradients) >= 2:
        first, second = list(gradients.values())[:2]
        measures["pooled_cosine"] = torch.cosine_similarity(first, second, dim=0, eps=1e-30)
    return measures


def _gradient(part: Tensor, vectors: Sequence[Tensor]) -> Tensor:
    """All gradients in a row; 0 for a vector that the part does not read."""
    found = torch.autograd.grad(part, list(vectors), retain_graph=True, allow_unused=True)
    return torch.cat(
        [
            (torch.zeros_like(vector) if gradient is None else gradient).flatten()
            for vector, gradient in zip(vectors, found, strict=True)
        ]
    )
