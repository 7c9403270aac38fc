"""SINCERE and ε-SupInfoNCE: each positive competes with the negatives only, never with the other positives."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_not_negative, mean_of, unit_rows
from core.losses.evaluate import ReferenceLines, TermInput
from core.losses.forces import Candidates
from core.losses.supcon import as_views, check_features
from core.parameters import number


def sincere_loss(features: Tensor, labels: Tensor, *, temperature: float = 0.07, epsilon: float = 0.0) -> Tensor:
    """Compute −mean over positives p of log e^{s_p} / (e^{s_p − ε} + Σ over negatives of e^{s_n}), s = cosine / τ.

    Args:
        features: [N, d] or [N, V, d], any scale; normalised here.
        labels: [N].
        temperature: > 0, unitless.
        epsilon: ≥ 0, margin in units of s: the loss falls further until a positive exceeds every negative by about
            this much. 0 gives SINCERE.
    Returns: scalar, nats, mean over the anchors that have a positive, in float32 or better; at least −ε.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: a batch without positives gives 0 with the graph attached.
    Source: Feeney & Hughes 2023, arXiv:2309.14277; ε: Barbano et al. 2023, arXiv:2211.05568.
    """
    check_features(features, labels, temperature)
    check_not_negative("epsilon", epsilon)
    with torch.autocast(features.device.type, enabled=False):
        views = as_views(features)
        z = unit_rows(views.flatten(0, 1))  # [M, d], M = N·V
        classes = labels.reshape(-1).to(z.device).repeat_interleave(views.shape[1])
        same = classes.unsqueeze(1) == classes.unsqueeze(0)
        positives = same & ~torch.eye(len(z), dtype=torch.bool, device=z.device)
        logits = z @ z.T / temperature
        push = logits.masked_fill(same, -math.inf).logsumexp(1, keepdim=True)  # −∞ without negatives
        log_p = logits - torch.logaddexp(logits - epsilon, push)
        counts = positives.sum(1)
        losses = -log_p.masked_fill(~positives, 0.0).sum(1) / counts.clamp(min=1)
        return losses.sum() / (counts > 0).sum().clamp(min=1)


def sincere_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    temperature, epsilon = number(settings, "temperature"), number(settings, "epsilon")
    return mean_of(
        [sincere_loss(layer.vectors, labels, temperature=temperature, epsilon=epsilon) for layer in given.layers]
    )


def sincere_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: with K negatives, ln(K + e^{−ε}), averaged over anchors that have a positive."""
    views = given.layers[0].vectors.shape[1]
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).double().sum(1) * views  # [N], with the anchor
    anchors = same > 1
    negatives = views * len(labels) - same
    at_collapse = (negatives + math.exp(-number(settings, "epsilon"))).log()
    active = (anchors & (negatives > 0)).double().mean()
    return ReferenceLines((at_collapse * anchors).sum() / anchors.sum().clamp(min=1), None, active)


def sincere_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    """Return the losses of anchors that have a positive, [A]; see `core.losses.forces`."""
    positives = candidates.own + candidates.alike
    logits = candidates.similarity / number(settings, "temperature")
    push = (logits + (candidates.copies - positives).log()).logsumexp(1, keepdim=True)
    log_p = logits - torch.logaddexp(logits - number(settings, "epsilon"), push)
    return -(positives * log_p).sum(1) / positives.sum(1)
