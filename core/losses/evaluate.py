"""Evaluation of an objective, a list of weighted terms: its total, its parts and the reference lines of each loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings, base_factor
from core.catalogue.losses import LOSSES
from core.registry import load


class Contrasted(NamedTuple):
    """The vectors to contrast in one layer, [N, V, d], and view_mask [N, V] if views are missing."""

    vectors: Tensor
    view_mask: Tensor | None = None


class Mixed(NamedTuple):
    """The mixing of texts: row numbers [N] of the partners, and the share of the first text.

    Mixup has one share for the batch, a 0-d tensor; CutMix has one for each text, [N].
    """

    partners: Tensor
    share: Tensor


class LastLayer(NamedTuple):
    """The last layer of the classifier: its inputs [N, d], its weight [C, d] and its bias [C]."""

    features: Tensor
    weight: Tensor
    bias: Tensor


class TermInput(NamedTuple):
    """The input of one term.

    Attributes:
        logits: [N, C] per view, for a loss on logits.
        layers: one entry per contrasted layer, for a loss on vectors.
        queue: additional candidates, features [Q, d] and labels [Q].
        mixed: the mixing of the texts, for Mixup and CutMix.
        last: instead of the logits of each view, for a margin of the angle.
    """

    logits: tuple[Tensor, ...] = ()
    layers: tuple[Contrasted, ...] = ()
    queue: tuple[Tensor, Tensor] | None = None
    mixed: Mixed | None = None
    last: tuple[LastLayer, ...] = ()


class Term(NamedTuple):
    """One weighted loss with its parameters, under a unique key."""

    key: str
    loss: str
    weight: float
    parameters: Settings


class ObjectiveValue(NamedTuple):
    """Total and parts of an objective, in nats. Parts are unweighted: total = Σ weight · term.

    `parts` holds every term under its key, and the pieces of a term, if any, under "<key>.<piece>".
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
        """Compute the objective.

        Args:
            read: returns the input of the term with a given key.
            labels: [N].
        """
        found: dict[str, dict[str, Tensor]] = {}
        total = torch.zeros((), device=labels.device)
        # Terms with a non-zero weight come first, so that inputs shared between terms are computed with their graph.
        for term in sorted(self.terms, key=lambda term: term.weight == 0):
            with torch.set_grad_enabled(term.weight > 0):
                value = load(LOSSES[term.loss].compute)(read(term.key), labels, term.parameters)
            term_total, pieces = value if isinstance(value, tuple) else (value, {})
            found[term.key] = {term.key: term_total, **{f"{term.key}.{name}": piece for name, piece in pieces.items()}}
            if term.weight > 0:
                total = total + term.weight * term_total
        return ObjectiveValue(total, {name: part for term in self.terms for name, part in found[term.key].items()})


class ReferenceLines(NamedTuple):
    """Reference levels of a term's loss on a batch.

    Attributes:
        collapse, bound: nats, float64 scalars; `bound` is None for a loss without a useful bound.
        active: fraction of the anchors, in [0, 1], that have a positive and a second candidate; without any, the loss
            is 0 for all vectors. None if every anchor is active.
    """

    collapse: Tensor
    bound: Tensor | None
    active: Tensor | None = None


# (positives of each view of an example [N], other views of the same example) → lower bound of the loss, [N]
BoundFunction = Callable[[Tensor, float], Tensor]


def reference_lines(loss: str, given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines | None:
    """Return the reference lines of a term on this batch; None for a loss on logits."""
    lines = LOSSES[loss].lines
    if not lines or not given.layers:
        return None
    found: ReferenceLines = load(lines)(given, labels, settings)
    factor = base_factor(settings)
    return found._replace(collapse=found.collapse * factor, bound=None if found.bound is None else found.bound * factor)


def contrast_lines(given: TermInput, labels: Tensor, bound: BoundFunction, reduction: str = "mean") -> ReferenceLines:
    """Return the lines of a loss whose positives share a label, on this batch, averaged over its layers.

    Collapse is the loss when all candidates are equally similar: ln(M − 1) for M vectors that are equal or equidistant.

    Args:
        reduction: "mean" over the anchors that have a positive, "mean_all" over all, or "sum".
    """
    lines = []
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).double()  # [N, N]
    for layer in given.layers:
        n, v, _ = layer.vectors.shape
        present = torch.ones(n, v, device=labels.device) if layer.view_mask is None else layer.view_mask
        views = present.double().sum(1)  # [N]
        others = views.sum() - 1
        positives = same @ views - 1  # [N], for each of an example's views
        if given.queue is not None:
            others = others + len(given.queue[1])
            positives = positives + (labels.unsqueeze(1) == given.queue[1].unsqueeze(0)).sum(1)
        anchors = views * (positives > 0)  # number of anchors of each example
        lowest = (bound(positives, float(v - 1)) * anchors).sum() / anchors.sum().clamp(min=1)
        active = (anchors.sum() / views.sum().clamp(min=1)) * (others > 1)
        times = anchors.sum() if reduction == "sum" else active if reduction == "mean_all" else 1.0
        lines.append((others.clamp(min=1).log() * times, lowest * times, active))
    return ReferenceLines(*(torch.stack(values).mean() for values in zip(*lines, strict=True)))
