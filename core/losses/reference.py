"""Reference lines of a contrastive loss: its value at collapse, and its lower bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.catalogue.losses import LOSSES
from core.losses.evaluate import Contrasted, TermInput
from core.registry import load


class ReferenceLines(NamedTuple):
    """Reference levels of a term's loss on a batch.

    Attributes:
        collapse, bound: nats, float64 scalars; `bound` is None for a loss without a bound worth drawing.
        active: fraction of the anchors, in [0, 1], that have a positive and a second candidate. Without any, the loss
            is 0 for all vectors. None if every anchor is active.
    """

    collapse: Tensor
    bound: Tensor | None
    active: Tensor | None = None


# (positives of each view of an example [N], its own other views) → the lower bound of their loss, [N]
BoundFunction = Callable[[Tensor, float], Tensor]


def reference_lines(loss: str, given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines | None:
    """Return the reference lines of a term on this batch; None for a loss on logits."""
    lines = LOSSES.entry(loss).lines
    return load(lines)(given, labels, settings) if lines and given.layers else None


def contrast_lines(given: TermInput, labels: Tensor, bound: BoundFunction) -> ReferenceLines:
    """Return the lines of a loss whose positives share a label, on this batch, averaged over its layers.

    Collapse is the loss when all candidates are equally similar: ln(M − 1) for M vectors that are equal or equidistant.
    """
    lines = [_lines(layer, given.queue, labels, bound) for layer in given.layers]
    collapse, lowest, active = (torch.stack(values).mean() for values in zip(*lines, strict=True))
    return ReferenceLines(collapse, lowest, active)


def _lines(
    layer: Contrasted, queue: tuple[Tensor, Tensor] | None, labels: Tensor, bound: BoundFunction
) -> tuple[Tensor, Tensor, Tensor]:
    n, v, _ = layer.vectors.shape
    present = torch.ones(n, v, device=labels.device) if layer.view_mask is None else layer.view_mask
    views = present.double().sum(1)  # [N]
    others = views.sum() - 1
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).double()  # [N, N]
    positives = same @ views - 1  # [N], for each of an example's views
    if queue is not None:
        others = others + len(queue[1])
        positives = positives + (labels.unsqueeze(1) == queue[1].unsqueeze(0)).sum(1)
    anchors = views * (positives > 0)  # number of anchors of each example
    lowest = (bound(positives, float(v - 1)) * anchors).sum() / anchors.sum().clamp(min=1)
    active = (anchors.sum() / views.sum().clamp(min=1)) * (others > 1)
    return others.clamp(min=1).log(), lowest, active
