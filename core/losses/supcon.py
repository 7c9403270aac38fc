"""Supervised contrastive loss, and the coefficients with which it moves an anchor."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Variant = Literal["out", "in"]
Reduction = Literal["mean", "mean_all", "sum", "none"]


class ContrastiveCoefficients(NamedTuple):
    """p, X and (p − X)/τ of every anchor, [M, M] each, example-major."""

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
) -> Tensor:
    """Supervised contrastive loss.

    Args:
        features: [N, d] or [N, V, d], any scale; normalised here unless normalize=False.
        labels: [N]; None makes the views of one example its only positives (SimCLR's NT-Xent).
        temperature: > 0, unitless.
        variant: "out" (mean of the logs) or "in" (log of the mean).
        mask: [N, N] instead of labels; entry (i, j) makes the views of j positives of the views of i.
        view_mask: [N, V] bool; a masked view is no anchor, no positive, no negative and gets zero gradient.
        anchors: "all" views, or "one" (view 0 only).
        reduction: "mean" over anchors that have a positive, "mean_all" over all anchors (those without count 0),
            "sum", or "none" [N·V], example-major.
        base_temperature: None for no factor; a number multiplies by temperature/base_temperature.
    Returns: scalar (or [N·V]), nats, in float32 or better.
    Raises: ValueError naming the argument, its value and what is expected.
    Edge: a batch without positives gives 0 with the graph attached.
    Source: Khosla et al. 2020, eq. 2–3, arXiv:2004.11362.
    """
    _check(features, labels, temperature, mask, view_mask)
    if base_temperature is not None and not (math.isfinite(base_temperature) and base_temperature > 0):
        raise ValueError(f"base_temperature = {base_temperature}: expected None or a finite number above 0")
    _check_choice("variant", variant, ("out", "in"))
    _check_choice("anchors", anchors, ("all", "one"))
    _check_choice("reduction", reduction, ("mean", "mean_all", "sum", "none"))
    if not normalize:
        warnings.warn(
            "supcon_loss without normalisation: gradients grow with the vectors and can explode", stacklevel=2
        )
    with torch.autocast(features.device.type, enabled=False):
        views = _as_views(features)  # [N, V, d]
        n, v, _ = views.shape
        present = _present(views, view_mask)  # [M]
        z = _rows(views, present, normalize)  # [M, d]
        logits = z @ z.T / temperature  # [M, M]
        candidates, positives = _relations(n, v, labels, mask, present, features.device)
        counts = positives.sum(1)  # [M]
        is_anchor = present if anchors == "all" else present & (torch.arange(n * v, device=z.device) % v == 0)
        counted = is_anchor & (counts > 0)

        # Self-pairs and absent views are −inf BEFORE the log-sum-exp; rows nobody counts stay finite for backward.
        candidates = torch.where(counted.unsqueeze(1), candidates, True)
        log_total = logits.masked_fill(~candidates, -math.inf).logsumexp(1, keepdim=True)
        log_p = logits - log_total
        if variant == "out":
            summed = log_p.masked_fill(~positives, 0.0).sum(1)
            per_anchor = -summed / counts.clamp(min=1)
        else:
            reachable = torch.where(counted.unsqueeze(1), positives, True)
            per_anchor = counts.clamp(min=1).to(z.dtype).log() - log_p.masked_fill(~reachable, -math.inf).logsumexp(1)
        per_anchor = torch.where(counted, per_anchor, per_anchor * 0.0)
        if base_temperature is not None:
            per_anchor = per_anchor * (temperature / base_temperature)
        if reduction == "none":
            return per_anchor
        total = per_anchor.sum()
        if reduction == "sum":
            return total
        return total / max(1, int((counted if reduction == "mean" else is_anchor).sum()))


def contrastive_coefficients(
    features: Tensor, labels: Tensor, *, temperature: float, variant: Variant = "out"
) -> ContrastiveCoefficients:
    """How hard each candidate pulls (negative) or pushes (positive) an anchor: ∂L_i/∂z_i = Σ_j coefficient_ij z_j.

    Args:
        features: [N, d] or [N, V, d]; normalised here.
        labels: [N].
        temperature: > 0, unitless.
        variant: X is 1/|P| for "out", the softmax over the positives for "in".
    Returns: p, X and (p − X)/τ, [M, M] with M = N·V, rows are anchors; a row without positives is all zero.
    Raises: ValueError as in `supcon_loss`.
    Source: Khosla et al. 2020, eq. 4–6, arXiv:2004.11362.
    """
    _check(features, labels, temperature, None, None)
    _check_choice("variant", variant, ("out", "in"))
    with torch.autocast(features.device.type, enabled=False):
        views = _as_views(features)
        n, v, _ = views.shape
        present = _present(views, None)
        z = _rows(views, present, normalize=True)
        logits = z @ z.T / temperature
        candidates, positives = _relations(n, v, labels, None, present, features.device)
        has_positive = positives.any(1, keepdim=True)
        p = _softmax_over(logits, candidates & has_positive)
        if variant == "out":
            x = (positives / positives.sum(1, keepdim=True).clamp(min=1)).to(p.dtype)
        else:
            x = _softmax_over(logits, positives)
        return ContrastiveCoefficients(p, x, (p - x) / temperature)


def collapse_line(candidates: int) -> float:
    """The loss when every candidate looks alike, ln(M − 1) for M vectors: all equal, or all equidistant; nats."""
    return math.log(candidates - 1) if candidates > 1 else 0.0


def lower_bound(labels: Tensor) -> float:
    """Mean of ln|P| over the anchors that have a positive, for one view each, nats; the loss cannot fall below it."""
    counts = labels.bincount()[labels] - 1
    counts = counts[counts > 0]
    return counts.double().log().mean().item() if len(counts) else 0.0


def _softmax_over(logits: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the allowed entries of each row; a row that allows none is zero."""
    any_allowed = allowed.any(1, keepdim=True)
    masked = logits.masked_fill(~(allowed | ~any_allowed), -math.inf)
    return masked.softmax(1) * allowed


def _as_views(features: Tensor) -> Tensor:
    views = features.unsqueeze(1) if features.ndim == 2 else features
    return views if views.dtype == torch.float64 else views.float()


def _present(views: Tensor, view_mask: Tensor | None) -> Tensor:
    if view_mask is None:
        return torch.ones(views.shape[0] * views.shape[1], dtype=torch.bool, device=views.device)
    return view_mask.reshape(-1).to(views.device)


def _rows(views: Tensor, present: Tensor, normalize: bool) -> Tensor:
    rows = views.flatten(0, 1)  # [M, d]
    # An absent view may hold anything, NaN too; where() keeps it out of values and gradients alike.
    rows = torch.where(present.unsqueeze(1), rows, torch.zeros_like(rows))
    if not normalize:
        return rows
    # Scaling by the largest entry first keeps the norm of tiny and huge vectors away from under- and overflow.
    largest = rows.detach().abs().amax(1, keepdim=True)
    rows = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    norm = rows.square().sum(1, keepdim=True)
    return rows * torch.where(norm > 0, norm, torch.ones_like(norm)).rsqrt()


def _relations(
    n: int, v: int, labels: Tensor | None, mask: Tensor | None, present: Tensor, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Who is a candidate of whom, and who a positive, [M, M] bool each."""
    if mask is not None:
        related = mask.to(device).bool()
    elif labels is not None:
        row = labels.reshape(-1).to(device)
        related = row.unsqueeze(0) == row.unsqueeze(1)
    else:
        related = torch.eye(n, dtype=torch.bool, device=device)
    other = ~torch.eye(n * v, dtype=torch.bool, device=device)
    candidates = other & present.unsqueeze(0) & present.unsqueeze(1)
    positives = candidates & related.repeat_interleave(v, 0).repeat_interleave(v, 1)
    return candidates, positives


def _check(
    features: Tensor, labels: Tensor | None, temperature: float, mask: Tensor | None, view_mask: Tensor | None
) -> None:
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature = {temperature}: expected a finite number above 0")
    if features.ndim not in (2, 3):
        raise ValueError(f"features of shape {tuple(features.shape)}: expected [N, d] or [N, V, d]")
    n = features.shape[0]
    if labels is not None and mask is not None:
        raise ValueError("labels and mask are both given: expected one of them, or neither")
    if labels is not None and labels.numel() != n:
        raise ValueError(f"labels of shape {tuple(labels.shape)}: expected [{n}], one per example")
    if mask is not None and tuple(mask.shape) != (n, n):
        raise ValueError(f"mask of shape {tuple(mask.shape)}: expected [{n}, {n}]")
    views = 1 if features.ndim == 2 else features.shape[1]
    if view_mask is not None and tuple(view_mask.shape) != (n, views):
        raise ValueError(f"view_mask of shape {tuple(view_mask.shape)}: expected [{n}, {views}]")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} = {value!r}: expected one of {', '.join(choices)}")
