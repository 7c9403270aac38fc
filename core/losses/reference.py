"""Reference lines of a contrastive loss: where all vectors look alike, and what it cannot go below."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from core.losses.evaluate import Contrasted, Settings, TermInput
from core.losses.supcon import collapse_line
from core.parameters import number


class ReferenceLines(NamedTuple):
    """What a term's loss on a batch is to be read against.

    Attributes:
        collapse, bound: nats, float64 scalars; None where a loss has no bound worth drawing.
        active: share of the anchors, in [0, 1], that have a positive and a second candidate. Without
            any the loss is 0 whatever the vectors are. None where every anchor is active.
    """

    collapse: Tensor
    bound: Tensor | None
    active: Tensor | None = None


def reference_lines(loss: str, given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines | None:
    """The lines of a term on this very batch, averaged over its layers; None for a loss on logits.

    Collapse: the loss when every candidate is as near as every other, all vectors equal or all equidistant: ln(M − 1)
    for M candidates, ln N for SimCSE's N second views, ln(2N − 1 + e^w) with hard negatives of weight w.
    Bound: mean ln|P| for SCL (Khosla et al. 2020, section 3.2.2); for DSCL the entropy of its weights, by Gibbs'
    inequality.
    """
    if not given.layers:
        return None
    if loss == "simcse" and settings.get("candidates") == "all":
        n, v, _ = given.layers[0].vectors.shape
        return ReferenceLines(_line(collapse_line(n * v)), None)
    if loss in ("simcse", "simcse_supervised"):
        n, v, _ = given.layers[0].vectors.shape
        hard = math.exp(number(settings, "hard_negative_weight")) - 1
        return ReferenceLines(_line(math.log(n * (v - 1) + hard)), None)
    lines = [_lines(loss, layer, given.queue, labels, settings) for layer in given.layers]
    collapse, bound, active = (torch.stack(values).mean() for values in zip(*lines, strict=True))
    return ReferenceLines(collapse, bound, active)


def _line(nats: float) -> Tensor:
    return torch.tensor(nats, dtype=torch.float64)


def _lines(
    loss: str, layer: Contrasted, queue: tuple[Tensor, Tensor] | None, labels: Tensor, settings: Settings
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
    collapse = others.clamp(min=1).log()
    if loss == "dscl" and not settings.get("uniform"):
        own = float(v - 1)
        bounds = _weights_entropy(number(settings, "alpha"), own, positives - own)
    else:
        bounds = positives.clamp(min=1).log()
    anchors = views * (positives > 0)  # how many anchors each example gives
    active = (anchors.sum() / views.sum().clamp(min=1)) * (others > 1)
    return collapse, (bounds * anchors).sum() / anchors.sum().clamp(min=1), active


def _weights_entropy(alpha: float, own: float, others: Tensor) -> Tensor:
    """Entropy of DSCL's target: α spread over the own views, 1 − α over the others of the class, if there are any."""
    mixed = -alpha * math.log(alpha / own) - (1 - alpha) * ((1 - alpha) / others.clamp(min=1)).log()
    return torch.where(others > 0, mixed, torch.full_like(mixed, math.log(own)))
