"""Decoupled supervised contrastive loss: an anchor's own views and the rest of its class are weighted separately."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings, base_factor
from core.losses.arguments import check_choice, check_positive, mean_of, to_full_precision, unit_rows
from core.losses.blockwise import group_similarity, others_logsumexp
from core.losses.evaluate import ReferenceLines, TermInput, contrast_lines
from core.losses.forces import Candidates
from core.losses.supcon import Queue, check_queue, queue_candidates
from core.parameters import number


def dscl_loss(
    features: Tensor,
    labels: Tensor,
    *,
    alpha: float | str = 0.1,
    temperature: float = 0.07,
    normalize: bool = True,
    variant: str = "paper",
    queue: Queue | None = None,
) -> Tensor:
    """Compute −[α·mean log p over the anchor's other views + (1 − α)·mean log p over the other texts of its class].

    Args:
        features: [N, V, d] with V ≥ 2, any scale; normalised here unless normalize=False.
        labels: [N].
        alpha: between 0 and 1, or "uniform" for α = (V − 1)/(|P| + V − 1) of each anchor. In the paper's loss this
            weights all positives equally, which gives L_out of `supcon_loss`.
        temperature: > 0, unitless.
        variant: "paper", or a form printed in the source notes, whose P holds all positives, own views included.
            "notes-formula": L_out with p multiplied by w = (1 − α)(|P| + 1)/|P| inside the logarithm, a constant shift.
            "notes-code": similarities less the largest of their row, the anchor's own included, which counts as
            constant; those of positives multiplied by w = (1 − α)·|P|/max(|P| − 1, 1) outside the denominator.
        queue: (features [Q, d], labels [Q]) of past batches, the paper's M: additional candidates, never anchors,
            without gradient. They are positives where labels are equal. Q = 0 means no queue.
    Returns: scalar, nats, mean over the N·V anchors, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: in the paper's loss, α is 1 for an anchor with no other text of its class. The gradient cannot be
        differentiated again. The notes' code adds 1e-30 to its denominator, which is left out here.
    Source: Xuan & Zhang 2024, eq. 8–9, AAAI; V > 2 is an extension made here.
    """
    if features.ndim != 3 or features.shape[1] < 2:
        raise ValueError(f"features of shape {tuple(features.shape)}: expected [N, V, d] with at least 2 views")
    if labels.numel() != features.shape[0]:
        raise ValueError(f"labels of shape {tuple(labels.shape)}: expected [{features.shape[0]}], one per example")
    if alpha != "uniform" and not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise ValueError(f"alpha = {alpha!r}: expected a number between 0 and 1, or 'uniform'")
    check_positive("temperature", temperature)
    check_choice("variant", variant, ("paper", "notes-formula", "notes-code"))
    if queue is not None:
        check_queue(queue, features.shape[-1])
    with torch.autocast(features.device.type, enabled=False):
        n, v, _ = features.shape
        z = to_full_precision(features).flatten(0, 1)  # [M, d], M = N·V
        z = unit_rows(z) if normalize else z
        example = torch.arange(n, device=z.device).repeat_interleave(v)  # [M]
        classes = labels.reshape(-1).to(z.device)[example]  # [M]
        own, own_count = group_similarity(z, example)
        alike, alike_count = group_similarity(z, classes.unique(return_inverse=True)[1])
        log_total, everyone = others_logsumexp(z, temperature), z
        if queue is not None and len(queue[0]):
            past, positive = queue_candidates(queue, z, classes, normalize)  # [Q, d], [M, Q]
            everyone, similarity = torch.cat([z, past]), z @ past.T
            alike, alike_count = alike + (similarity * positive).sum(1), alike_count + positive.sum(1)
            log_total = log_total.logaddexp((similarity / temperature).logsumexp(1))
        if variant != "paper":
            top = (z @ everyone.T).detach().amax(1) / temperature if variant == "notes-code" else 0.0
            share = own_count / (alike_count + own_count).to(z.dtype) if isinstance(alpha, str) else alpha
            return _notes_losses(variant, alike / alike_count / temperature, log_total, top, alike_count, share).mean()
        class_count = alike_count - own_count  # |P| without the anchor's own views
        own_share = torch.full_like(own, 0.0 if isinstance(alpha, str) else alpha)
        if alpha == "uniform":
            own_share = own_count / alike_count.to(z.dtype)
        own_share = torch.where(class_count > 0, own_share, 1.0)
        pull = own_share * own / own_count + (1 - own_share) * (alike - own) / class_count.clamp(min=1)
        return (log_total - pull / temperature).mean()


def _notes_losses(
    variant: str, pull: Tensor, log_total: Tensor, top: Tensor | float, positives: Tensor, alpha: Tensor | float
) -> Tensor:
    """Return the losses [A] of a variant of the notes.

    Args:
        pull: mean logit of the positives, [A].
        log_total: logarithm of the denominator, [A].
        top: largest logit of the row, [A]; used by the code only.
        positives: their number |P| ≥ 1, [A].
    """
    count = positives.to(pull.dtype)
    if variant == "notes-formula":
        return log_total - pull - ((1 - alpha) * (count + 1) / count).log()
    return log_total - top - (1 - alpha) * count / (count - 1).clamp(min=1) * (pull - top)


def dscl_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    loss = mean_of(
        [
            dscl_loss(
                layer.vectors,
                labels,
                alpha="uniform" if settings["uniform"] else number(settings, "alpha"),
                temperature=number(settings, "temperature"),
                normalize=bool(settings["normalize"]),
                variant=str(settings["variant"]),
                queue=given.queue,
            )
            for layer in given.layers
        ]
    )
    return loss * base_factor(settings)


def dscl_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the reference lines. By Gibbs' inequality, the paper's bound is the entropy of the weights.

    The notes' formula shifts the lines of L_out. The notes' code has no useful bound: for w < 1 it goes below 0.
    """
    uniform, alpha = bool(settings.get("uniform")), number(settings, "alpha")
    if settings.get("variant") == "notes-code":
        return contrast_lines(given, labels, lambda positives, _: positives.clamp(min=1).log())._replace(bound=None)
    if settings.get("variant") == "notes-formula":
        lines = contrast_lines(given, labels, lambda positives, _: positives.clamp(min=1).log())

        def log_weight(positives: Tensor, own: float) -> Tensor:
            share = own / (positives + own) if uniform else alpha
            return ((1 - share) * (positives + 1) / positives.clamp(min=1)).log()

        shift = contrast_lines(given, labels, log_weight).bound
        assert lines.bound is not None
        assert shift is not None
        return lines._replace(collapse=lines.collapse - shift, bound=lines.bound - shift)
    if uniform:
        return contrast_lines(given, labels, lambda positives, _: positives.clamp(min=1).log())
    return contrast_lines(given, labels, lambda positives, own: _weights_entropy(alpha, own, positives - own))


def _weights_entropy(alpha: float, own: float, others: Tensor) -> Tensor:
    """Return the entropy of the target: α spread over the own views, 1 − α over the other positives, if any."""
    mixed = -alpha * math.log(alpha / own) - (1 - alpha) * ((1 - alpha) / others.clamp(min=1)).log()
    return torch.where(others > 0, mixed, torch.full_like(mixed, math.log(own)))


def dscl_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    """Return the loss of each anchor, [A]; see `core.losses.forces`."""
    temperature, alpha = number(settings, "temperature"), number(settings, "alpha")
    own, alike = candidates.own.sum(1), candidates.alike.sum(1)
    if settings["variant"] != "paper":
        logits, positives = candidates.similarity / temperature, candidates.own + candidates.alike
        count = positives.sum(1)
        log_total = (logits.masked_fill(candidates.copies == 0, -math.inf) + candidates.copies.log()).logsumexp(1)
        # An own view stands in for the anchor itself. As a constant, the largest logit changes no force.
        top = logits.detach().amax(1)
        share = own / (count + own) if settings["uniform"] else alpha
        return _notes_losses(
            str(settings["variant"]), (positives * logits).sum(1) / count, log_total, top, count, share
        )
    log_p = candidates.log_p(temperature).masked_fill(candidates.own + candidates.alike == 0, 0.0)
    share = own / (own + alike) if settings["uniform"] else torch.full_like(own, alpha)
    share = torch.where(alike > 0, share, 1.0)
    of_own, of_alike = (candidates.own * log_p).sum(1) / own, (candidates.alike * log_p).sum(1) / alike.clamp(min=1)
    return -(share * of_own + (1 - share) * of_alike)
