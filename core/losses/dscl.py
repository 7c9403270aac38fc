"""Decoupled supervised contrastive loss: an anchor's own views and the rest of its class are weighted separately."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_positive, mean_of, to_full_precision, unit_rows
from core.losses.blockwise import group_similarity, others_logsumexp
from core.losses.evaluate import ReferenceLines, TermInput, contrast_lines
from core.losses.forces import Candidates
from core.parameters import number


def dscl_loss(
    features: Tensor, labels: Tensor, *, alpha: float | str = 0.1, temperature: float = 0.07, normalize: bool = True
) -> Tensor:
    """Compute −[α·mean log p over the anchor's other views + (1 − α)·mean log p over the other texts of its class].

    Args:
        features: [N, V, d] with V ≥ 2, any scale; normalised here unless normalize=False.
        labels: [N].
        alpha: between 0 and 1, or "uniform" to weight all positives equally, which gives L_out of `supcon_loss`.
        temperature: > 0, unitless.
    Returns: scalar, nats, mean over the N·V anchors, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: α is 1 for an anchor with no other text of its class. The gradient cannot be differentiated again.
    Source: Xuan & Zhang 2024, eq. 8–9, AAAI; V > 2 is an extension made here.
    """
    if features.ndim != 3 or features.shape[1] < 2:
        raise ValueError(f"features of shape {tuple(features.shape)}: expected [N, V, d] with at least 2 views")
    if labels.numel() != features.shape[0]:
        raise ValueError(f"labels of shape {tuple(labels.shape)}: expected [{features.shape[0]}], one per example")
    if alpha != "uniform" and not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise ValueError(f"alpha = {alpha!r}: expected a number between 0 and 1, or 'uniform'")
    check_positive("temperature", temperature)
    with torch.autocast(features.device.type, enabled=False):
        n, v, _ = features.shape
        z = to_full_precision(features).flatten(0, 1)  # [M, d], M = N·V
        z = unit_rows(z) if normalize else z
        example = torch.arange(n, device=z.device).repeat_interleave(v)  # [M]
        groups = labels.reshape(-1).to(z.device).unique(return_inverse=True)[1][example]  # [M]
        own, own_count = group_similarity(z, example)
        alike, alike_count = group_similarity(z, groups)
        class_count = alike_count - own_count  # |P| without the anchor's own views
        own_share = torch.full_like(own, 0.0 if isinstance(alpha, str) else alpha)
        if alpha == "uniform":
            own_share = own_count / alike_count.to(z.dtype)
        own_share = torch.where(class_count > 0, own_share, 1.0)
        pull = own_share * own / own_count + (1 - own_share) * (alike - own) / class_count.clamp(min=1)
        return (others_logsumexp(z, temperature) - pull / temperature).mean()


def dscl_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    temperature = number(settings, "temperature")
    alpha: float | str = "uniform" if settings["uniform"] else number(settings, "alpha")
    return mean_of(
        [
            dscl_loss(
                layer.vectors, labels, alpha=alpha, temperature=temperature, normalize=bool(settings["normalize"])
            )
            for layer in given.layers
        ]
    )


def dscl_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the reference lines. By Gibbs' inequality, the bound is the entropy of the weights."""
    if settings.get("uniform"):
        return contrast_lines(given, labels, lambda positives, _: positives.clamp(min=1).log())
    alpha = number(settings, "alpha")
    return contrast_lines(given, labels, lambda positives, own: _weights_entropy(alpha, own, positives - own))


def _weights_entropy(alpha: float, own: float, others: Tensor) -> Tensor:
    """Return the entropy of the target: α spread over the own views, 1 − α over the other positives, if any."""
    mixed = -alpha * math.log(alpha / own) - (1 - alpha) * ((1 - alpha) / others.clamp(min=1)).log()
    return torch.where(others > 0, mixed, torch.full_like(mixed, math.log(own)))


def dscl_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    """Return the loss of each anchor, [A]; see `core.losses.forces`."""
    log_p = candidates.log_p(number(settings, "temperature")).masked_fill(candidates.own + candidates.alike == 0, 0.0)
    own, alike = candidates.own.sum(1), candidates.alike.sum(1)
    share = own / (own + alike) if settings["uniform"] else torch.full_like(own, number(settings, "alpha"))
    share = torch.where(alike > 0, share, 1.0)
    of_own, of_alike = (candidates.own * log_p).sum(1) / own, (candidates.alike * log_p).sum(1) / alike.clamp(min=1)
    return -(share * of_own + (1 - share) * of_alike)
