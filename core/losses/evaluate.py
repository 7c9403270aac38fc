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
    """The vectors to contrast in one layer, [N, V, d], and view_mask [N, V] if views are missing."""

    vectors: Tensor
    view_mask: Tensor | None = None


class Mixed(NamedTuple):
    """The mixing of texts before the classifier: row numbers [N] of the partners, and the share of the first text."""

    partners: Tensor
    share: Tensor


class TermInput(NamedTuple):
    """The input of one term.

    Attributes:
        logits: [N, C] per view, for a loss on logits.
        layers: one entry per contrasted layer, for a loss on vectors.
        queue: additional candidates, features [Q, d] and labels [Q].
        mixed: the mixing of the texts, for Mixup.
    """

    logits: tuple[Tensor, ...] = ()
    layers: tuple[Contrasted, ...] = ()
    queue: tuple[Tensor, Tensor] | None = None
    mixed: Mixed | None = None


class Term(NamedTuple):
    """One weighted loss with its parameters, under a unique key."""

    key: str
    loss: str
    weight: float
    parameters: Settings


class ObjectiveValue(NamedTuple):
    """Total, terms and parts, in nats; unweighted: total = Σ weight · term.

    `parts` has every term under its key, and the pieces of a term, if any, under "<key>.<piece>".
    """

    total: Tensor
    parts: dict[str, Tensor]


class Objective:
    """A sum of weighted terms, evaluated on one batch.

    A term of weight 0 is reported, but computed outside the graph: it has no backward pass and no effect on training.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)

    def __call__(self, read: Callable[[str], TermInput], labels: Tensor) -> ObjectiveValue:
        """Compute the objective. Args: read: returns a term's input by its key; labels: [N]."""
        found: dict[str, dict[str, Tensor]] = {}
        total = torch.zeros((), device=labels.device)
        # Terms with a weight come first, so that inputs shared between terms are computed with their graph.
        for term in sorted(self.terms, key=lambda term: term.weight == 0):
            with torch.set_grad_enabled(term.weight > 0):
                value = load(LOSSES.entry(term.loss).compute)(read(term.key), labels, term.parameters)
            term_total, pieces = value if isinstance(value, tuple) else (value, {})
            found[term.key] = {term.key: term_total, **{f"{term.key}.{name}": piece for name, piece in pieces.items()}}
            if term.weight > 0:
                total = total + term.weight * term_total
        return ObjectiveValue(total, {name: part for term in self.terms for name, part in found[term.key].items()})
