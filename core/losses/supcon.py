"""Supervised contrastive loss, and the coefficients of its gradient on an anchor."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings, base_factor
from core.losses.arguments import check_choice, check_positive, check_shape, mean_of, to_full_precision, unit_rows
from core.losses.blockwise import group_similarity, others_logsumexp
from core.losses.evaluate import ReferenceLines, TermInput, contrast_lines
from core.losses.forces import Candidates
from core.parameters import number

Variant = Literal["out", "in"]
Reduction = Literal["mean", "mean_all", "sum", "none"]
Queue = tuple["Tensor", "Tensor"]

# From this many vectors on, computing the matrix of all pairs in strips is faster than at once.
BLOCKWISE_FROM = 384


class ContrastiveCoefficients(NamedTuple):
    """The terms p, X and (p − X)/τ of every anchor, [M, M] each, example-major."""

    p: Tensor
    X: Tensor
    coefficients: Tensor


def supcon_loss(
    features: Tensor,
    labels: Tensor | None = None,
    *,
    temperature: float = 0.07,
    variant: Variant = "out",
    normalize: bool = True,
    mask: Tensor | None = None,
    view_mask: Tensor | None = None,
    anchors: Literal["all", "one"] = "all",
    reduction: Reduction = "mean",
    base_temperature: float | None = None,
    queue: Queue | None = None,
    left_out: Tensor | None = None,
) -> Tensor:
    """Compute the supervised contrastive loss.

    Args:
        features: [N, d] or [N, V, d], any scale; normalised here unless normalize=False.
        labels: [N]; None for self-supervised positives, the other views of the example (SimCLR's NT-Xent).
        temperature: > 0, unitless.
        variant: "out" (mean of the logs) or "in" (log of the mean).
        mask: [N, N] instead of labels; entry (i, j) makes the views of j positives of the views of i.
        view_mask: [N, V] bool; False marks a missing view: no anchor, no positive, no negative and zero gradient.
        anchors: "all" views, or "one" (view 0 only).
        reduction: "mean" over anchors that have a positive, "mean_all" over all anchors (those without count as 0),
            "sum", or "none" [N·V], example-major.
        base_temperature: multiplies the loss by temperature/base_temperature; None for no factor.
        queue: (features [Q, d], labels [Q]) of past batches: additional candidates, never anchors, without gradient.
            They are positives where labels are equal. Without labels, all are negatives. Q = 0 means no queue.
        left_out: [N, N] bool; entry (i, j) removes the views of j from the candidates of the views of i, unless they
            are positives.
    Returns: scalar (or [N·V]), nats, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: a batch without positives gives 0 with the graph attached. A large batch without mask, queue and left_out
        does not store the matrix of all pairs (`blockwise`); its gradient cannot be differentiated again.
    Source: Khosla et al. 2020, eq. 2–3, arXiv:2004.11362; the queue: He et al. 2020, arXiv:1911.05722.
    """
    check_features(features, labels, temperature, mask, view_mask, queue)
    if left_out is not None:
        check_shape("left_out", left_out, (features.shape[0],) * 2)
    if base_temperature is not None:
        check_positive("base_temperature", base_temperature)
    check_choice("variant", variant, ("out", "in"))
    check_choice("anchors", anchors, ("all", "one"))
    check_choice("reduction", reduction, ("mean", "mean_all", "sum", "none"))
    if not normalize:
        warnings.warn(
            "supcon_loss without normalisation: gradients grow with the vectors and can explode", stacklevel=2
        )
    with torch.autocast(features.device.type, enabled=False):
        views = as_views(features)  # [N, V, d]
        n, v, _ = views.shape
        # Indices n·V + v of the views that are not missing, [M], M = N·V less the missing views.
        place = torch.arange(n * v, device=views.device)
        if view_mask is not None:
            place = view_mask.reshape(-1).to(views.device).nonzero().squeeze(1)
        # A missing view may hold any values, even NaN: dropping its row removes it from values and gradients.
        z = views.flatten(0, 1) if view_mask is None else views.flatten(0, 1)[place]  # [M, d]
        z = unit_rows(z) if normalize else z
        owner = place // v
        classes = owner if labels is None else labels.reshape(-1).to(z.device)[owner]  # [M]
        whole = mask is None and left_out is None and (queue is None or not len(queue[0]))
        if whole and len(z) >= BLOCKWISE_FROM:
            losses, has_positive = _in_strips(z, classes, temperature, variant)
        else:
            related = _equal(classes, classes) if mask is None else mask.to(z.device).bool()[owner][:, owner]
            other = ~torch.eye(len(z), dtype=torch.bool, device=z.device)
            everyone, candidates, positives = z, other, other & related  # [M, d], [M, M], [M, M]
            if left_out is not None:
                candidates = other & (related | ~left_out.to(z.device)[owner][:, owner])
            if queue is not None:
                past, alike = queue_candidates(
                    queue, z, None if labels is None else classes, normalize
                )  # [Q, d], [M, Q]
                everyone = torch.cat([z, past])
                candidates = torch.cat([candidates, torch.ones_like(alike)], 1)
                positives = torch.cat([positives, alike], 1)
            losses, has_positive = _in_one_matrix(z @ everyone.T / temperature, candidates, positives, variant)
        is_anchor = torch.ones_like(has_positive) if anchors == "all" else place % v == 0
        counted = is_anchor & has_positive
        losses = torch.where(counted, losses, 0.0)
        if base_temperature is not None:
            losses = losses * (temperature / base_temperature)
        if reduction == "none":
            return losses if view_mask is None else losses.new_zeros(n * v).index_copy(0, place, losses)
        total = losses.sum()
        if reduction == "sum":
            return total
        return total / max(1, int((counted if reduction == "mean" else is_anchor).sum()))


def _in_one_matrix(logits: Tensor, candidates: Tensor, positives: Tensor, variant: Variant) -> tuple[Tensor, Tensor]:
    """Return one loss per row of the logits [M, M + Q], and a mask of the rows that have a positive.

    Losses of rows without a positive are meaningless.
    """
    counts = positives.sum(1)  # [M]
    has_positive = counts > 0
    # Self-pairs must be −inf before the log-sum-exp. Rows without a positive must stay finite for backward.
    candidates = candidates | ~has_positive.unsqueeze(1)
    log_p = logits - logits.masked_fill(~candidates, -math.inf).logsumexp(1, keepdim=True)
    if variant == "out":
        return -log_p.masked_fill(~positives, 0.0).sum(1) / counts.clamp(min=1), has_positive
    reachable = positives | ~has_positive.unsqueeze(1)
    log_sum = log_p.masked_fill(~reachable, -math.inf).logsumexp(1)
    return counts.clamp(min=1).to(log_sum.dtype).log() - log_sum, has_positive


def _in_strips(z: Tensor, classes: Tensor, temperature: float, variant: Variant) -> tuple[Tensor, Tensor]:
    """Compute `_in_one_matrix` strip by strip. Positives share a class, and all rows are candidates of each other."""
    groups = classes.unique(return_inverse=True)[1]
    log_total = others_logsumexp(z, temperature)
    if variant == "out":
        similarity, counts = group_similarity(z, groups)
        return log_total - similarity / counts.clamp(min=1) / temperature, counts > 0
    counts = groups.bincount()[groups] - 1
    log_count = counts.clamp(min=1).to(z.dtype).log()
    return log_count + log_total - others_logsumexp(z, temperature, groups), counts > 0


def contrastive_coefficients(
    features: Tensor, labels: Tensor, *, temperature: float, variant: Variant = "out"
) -> ContrastiveCoefficients:
    """Compute the pull (negative) or push (positive) of each candidate: ∂L_i/∂z_i = Σ_j coefficient_ij z_j.

    Args:
        features: [N, d] or [N, V, d]; normalised here.
        labels: [N].
        temperature: > 0, unitless.
        variant: X is 1/|P| for "out", the softmax over the positives for "in".
    Returns: p, X and (p − X)/τ, [M, M] with M = N·V, rows are anchors, in float32 or better (float64 in, float64 out);
        each row of coefficients sums to 0 up to rounding; a row without positives is all zero.
    Raises: ValueError as in `supcon_loss`.
    Source: Khosla et al. 2020, eq. 4–6, arXiv:2004.11362.
    """
    check_features(features, labels, temperature)
    check_choice("variant", variant, ("out", "in"))
    with torch.autocast(features.device.type, enabled=False):
        views = as_views(features)
        z = unit_rows(views.flatten(0, 1))
        logits = z @ z.T / temperature
        classes = labels.reshape(-1).to(z.device).repeat_interleave(views.shape[1])
        candidates = ~torch.eye(len(z), dtype=torch.bool, device=z.device)
        positives = candidates & _equal(classes, classes)
        has_positive = positives.any(1, keepdim=True)
        p = _softmax_over(logits, candidates & has_positive)
        if variant == "out":
            # Dividing bool by integer would use torch's default precision instead of that of the features.
            x = positives.to(p.dtype) / positives.sum(1, keepdim=True).clamp(min=1)
        else:
            x = _softmax_over(logits, positives)
        return ContrastiveCoefficients(p, x, (p - x) / temperature)


def _softmax_over(logits: Tensor, allowed: Tensor) -> Tensor:
    """Return the softmax over the allowed entries of each row; zero for a row without any."""
    any_allowed = allowed.any(1, keepdim=True)
    masked = logits.masked_fill(~(allowed | ~any_allowed), -math.inf)
    return masked.softmax(1) * allowed


def as_views(features: Tensor) -> Tensor:
    return to_full_precision(features.unsqueeze(1) if features.ndim == 2 else features)


def queue_candidates(queue: Queue, z: Tensor, classes: Tensor | None, normalize: bool) -> tuple[Tensor, Tensor]:
    """Return the vectors of the queue as candidates of z, [Q, d], and the mask of positive pairs, [M, Q]."""
    vectors = to_full_precision(queue[0].detach())
    vectors = (unit_rows(vectors) if normalize else vectors).to(z)
    if classes is None:
        return vectors, torch.zeros(len(z), len(vectors), dtype=torch.bool, device=z.device)
    return vectors, _equal(classes, queue[1].to(z.device))


def _equal(rows: Tensor, columns: Tensor) -> Tensor:
    return rows.unsqueeze(1) == columns


def check_features(
    features: Tensor,
    labels: Tensor | None,
    temperature: float,
    mask: Tensor | None = None,
    view_mask: Tensor | None = None,
    queue: Queue | None = None,
) -> None:
    check_positive("temperature", temperature)
    if features.ndim not in (2, 3):
        raise ValueError(f"features of shape {tuple(features.shape)}: expected [N, d] or [N, V, d]")
    n = features.shape[0]
    if labels is not None and mask is not None:
        raise ValueError("labels and mask are both given: expected one of them, or neither")
    if labels is not None and labels.numel() != n:
        raise ValueError(f"labels of shape {tuple(labels.shape)}: expected [{n}], one per example")
    if mask is not None:
        check_shape("mask", mask, (n, n))
    if view_mask is not None:
        check_shape("view_mask", view_mask, (n, 1 if features.ndim == 2 else features.shape[1]))
    if queue is not None:
        check_queue(queue, features.shape[-1])


def check_queue(queue: Queue, width: int) -> None:
    """Check the shapes of a queue of vectors of this width. Raises: ValueError."""
    past, past_labels = queue
    if past.ndim != 2 or past.shape[1] != width:
        raise ValueError(f"queue features of shape {tuple(past.shape)}: expected [Q, {width}]")
    check_shape("queue labels", past_labels, (len(past),), "one per vector of the queue")


def supcon_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    loss = mean_of(
        [
            supcon_loss(
                vectors,
                labels,
                temperature=number(settings, "temperature"),
                variant="in" if settings["variant"] == "in" else "out",
                normalize=bool(settings["normalize"]),
                view_mask=view_mask,
                reduction=cast(Reduction, settings["reduction"]),
                queue=given.queue,
            )
            for vectors, view_mask in given.layers
        ]
    )
    return loss * base_factor(settings)


def supcon_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the reference lines. The bound is the mean (or sum) of ln|P| (Khosla et al. 2020, section 3.2.2)."""
    reduction = str(settings.get("reduction", "mean"))
    return contrast_lines(given, labels, lambda positives, _: positives.clamp(min=1).log(), reduction)


def supcon_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    """Return the losses of anchors that have a positive, [A]; see `core.losses.forces`."""
    positives = candidates.own + candidates.alike
    log_p = candidates.log_p(number(settings, "temperature"))
    if settings["variant"] == "out":
        return -(positives * log_p.masked_fill(positives == 0, 0.0)).sum(1) / positives.sum(1)
    return positives.sum(1).log() - (log_p + positives.log()).logsumexp(1)
