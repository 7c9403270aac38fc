"""Reference lines of a contrastive loss: where all vectors look alike, and what it cannot go below."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.lazy import lazy
from core.losses.entry import Contrasted, ReferenceLines, TermInput

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy("torch")

# (positives of each of an example's views [N], its own other views) → the lower bound of their loss, [N]
BoundFunction = Callable[["Tensor", float], "Tensor"]


def contrast_lines(given: TermInput, labels: Tensor, bound: BoundFunction) -> ReferenceLines:
    """The lines of a loss whose positives share a label, on this very batch, averaged over its layers.

    Collapse: the loss when every candidate is as near as every other, all vectors equal or all equidistant: ln(M − 1)
    for M candidates.
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
    anchors = views * (positives > 0)  # how many anchors each example gives
    lowest = (bound(positives, float(v - 1)) * anchors).sum() / anchors.sum().clamp(min=1)
    active = (anchors.sum() / views.sum().clamp(min=1)) * (others > 1)
    return others.clamp(min=1).log(), lowest, active
