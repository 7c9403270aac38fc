"""An objective: a list of weighted terms, evaluated to a total and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from core.losses.scl import cross_entropy_loss
from core.losses.supcon import supcon_loss


class ObjectiveValue(NamedTuple):
    """Total and parts, in nats; the parts are unweighted: total = Σ weight · part."""

    total: Tensor
    parts: dict[str, Tensor]


class Term(NamedTuple):
    """One weighted loss with its parameters."""

    loss: str
    weight: float
    parameters: Mapping[str, float | str]


# (features [N, d], logits [N, C], labels [N], parameters) → scalar
TermFunction = Callable[[Tensor, Tensor, Tensor, Mapping[str, float | str]], Tensor]

TERMS: Mapping[str, TermFunction] = {
    "cross_entropy": lambda features, logits, labels, _: cross_entropy_loss(logits, labels),
    "supcon": lambda features, logits, labels, p: supcon_loss(features, labels, temperature=float(p["temperature"])),
}


class Objective:
    """Evaluates weighted terms on one batch.

    A term of weight 0 is still reported, but outside the graph: it costs no backward pass and moves nothing.
    """

    def __init__(self, terms: list[Term]) -> None:
        self.terms = terms

    def __call__(self, features: Tensor, logits: Tensor, labels: Tensor) -> ObjectiveValue:
        """features [N, d] pooled vectors, logits [N, C], labels [N]."""
        parts: dict[str, Tensor] = {}
        total = features.new_zeros(())
        for term in self.terms:
            with torch.set_grad_enabled(term.weight > 0):
                part = TERMS[term.loss](features, logits, labels, term.parameters)
            parts[term.loss] = part
            if term.weight > 0:
                total = total + term.weight * part
        return ObjectiveValue(total, parts)
