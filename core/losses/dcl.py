"""Decoupled contrastive loss: NT-Xent without the positive pair in its denominator."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_matrix, check_positive, check_shape, mean_of, to_full_precision, unit_rows
from core.losses.evaluate import ReferenceLines, TermInput
from core.losses.forces import Candidates
from core.parameters import number


def dcl_loss(z1: Tensor, z2: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Compute −s(z, z') / τ + log Σ over all vectors of other texts of e^{s / τ}, s = cosine.

    Args:
        z1: [N, d], any scale; normalised here, like z2.
        z2: [N, d], the other view of the same texts.
        temperature: > 0, unitless.
    Returns: scalar, nats, mean over the 2N vectors as anchors, in float32 or better; it can be negative.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: a single text has no negatives and gives 0 with the graph attached.
    Source: Yeh et al. 2022, eq. 6, arXiv:2110.06848.
    """
    check_positive("temperature", temperature)
    check_matrix("z1", z1)
    check_shape("z2", z2, tuple(z1.shape), "the shape of z1")
    n = len(z1)
    with torch.autocast(z1.device.type, enabled=False):
        z = unit_rows(to_full_precision(torch.cat([z1, z2])))  # [2N, d]
        logits = z @ z.T / temperature
        if n < 2:
            return 0.0 * logits.sum()
        own = torch.eye(n, dtype=torch.bool, device=z.device).repeat(2, 2)  # an anchor and its other view
        return (logits.masked_fill(own, -math.inf).logsumexp(1) - logits.diagonal(n).repeat(2)).mean()


def dcl_term(given: TermInput, _: Tensor, settings: Settings) -> Tensor:
    temperature = number(settings, "temperature")
    return mean_of([dcl_loss(vectors[:, 0], vectors[:, 1], temperature=temperature) for vectors, _ in given.layers])


def dcl_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: ln(2N − 2)."""
    return ReferenceLines(torch.tensor(math.log(max(1, 2 * len(labels) - 2)), dtype=torch.float64), None)


def dcl_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    """Return the loss of each anchor, [A]; see `core.losses.forces`."""
    logits = candidates.similarity / number(settings, "temperature")
    push = (logits + (candidates.copies - candidates.own).log()).logsumexp(1)
    return push - (candidates.own * logits).sum(1) / candidates.own.sum(1)
