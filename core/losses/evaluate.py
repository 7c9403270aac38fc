"""An objective: a list of weighted terms, evaluated to a total and its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.catalogue.losses import LOSSES
from core.registry import load


class Contrasted(NamedTuple):
    """What is contrasted in one layer: vectors [N, V, d] and, where views are missing, view_mask [N, V]."""

    vectors: Tensor
    view_mask: Tensor | None = None


class Mixed(NamedTuple):
    """How texts were mixed before the classifier: row numbers [N] of the partners, and the first text's share."""

    partners: Tensor
    share: Tensor


class TermInput(NamedTuple):
    """What one term reads.

    Attributes:
        logits: [N, C] for each view, for a loss on logits.
        layers: one entry per contrasted layer, for a loss on vectors.
        queue: further candidates, features [Q, d] and labels [Q].
    """

    logits: tuple[Tensor, ...] = ()
    layers: tuple[Contrasted, ...] = ()
    queue: tuple[Tensor, Tensor] | None = None
    mixed: Mixed | None = None


class Term(NamedTuple):
    """One weighted loss with its parameters, under a name of its own."""

    key: str
    loss: str
    weight: float
    parameters: Settings


class ObjectiveValue(NamedTuple):
    """Total, terms and parts, in nats; unweighted: total = Σ weight · term.

    `parts` has every term under its key, and the pieces of a term that has some under "<key>.<piece>".
    """

    total: Tensor
    parts: dict[str, Tensor]


class Objective:
    """Evaluates weighted terms on one batch.

    A term of weight 0 is still reported, but outside the graph: it costs no backward pass and moves nothing.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)

    def __call__(self, read: Callable[[str], TermInput], labels: Tensor) -> ObjectiveValue:
        """Args: read gives a term's input by its key; labels [N]."""
        found: dict[str, dict[str, Tensor]] = {}
        total = torch.zeros((), device=labels.device)
        # Those that count come first, so that what terms share is computed with its graph.
        for term in sorted(self.terms, key=lambda term: term.weight == 0):
            with torch.set_grad_enabled(term.weight > 0):
                value = load(LOSSES.entry(term.loss).compute)(read(term.key), labels, term.parameters)
            term_total, pieces = value if isinstance(value, tuple) else (value, {})
            found[term.key] = {term.key: term_total, **{f"{term.key}.{name}": piece for name, piece in pieces.items()}}
            if term.weight > 0:
                total = total + term.weight * term_total
        return ObjectiveValue(total, {name: part for term in self.terms for name, part in found[term.key].items()})
