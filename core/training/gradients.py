"""What each part of the objective asks of the pooled vectors, and whether the parts agree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.losses.objective import ObjectiveValue, Term


def pooled_gradients(value: ObjectiveValue, terms: Sequence[Term], pooled: Tensor) -> dict[str, Tensor]:
    """Norm of each weighted part's gradient on the pooled vectors [B, H], and the cosine between the first two.

    Only the layers behind the pooled vector are walked, so this costs next to nothing beside the encoder.

    Returns: "pooled_grad.<term>" for every part that moves something, and "pooled_cosine" when two do.
    """
    gradients = {
        term.loss: torch.autograd.grad(term.weight * value.parts[term.loss], pooled, retain_graph=True)[0].flatten()
        for term in terms
        if term.weight > 0
    }
    measures = {f"pooled_grad.{name}": gradient.norm() for name, gradient in gradients.items()}
    if len(gradients) >= 2:
        first, second = list(gradients.values())[:2]
        measures["pooled_cosine"] = torch.cosine_similarity(first, second, dim=0, eps=1e-30)
    return measures
