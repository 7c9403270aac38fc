"""Cross-entropy and its classical variants: label smoothing, margins, Mixup of vectors and CutMix."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_matrix, check_not_negative, check_shape, mean_of, to_full_precision
from core.losses.evaluate import TermInput
from core.parameters import integer_setting, number


def cross_entropy_loss(logits: Tensor, labels: Tensor, *, label_smoothing: float = 0.0, margin: float = 0.0) -> Tensor:
    """Compute the mean cross-entropy, with optional label smoothing and margin.

    Args:
        logits: [N, C].
        labels: [N], classes from 0.
        label_smoothing: ε in [0, 1); the target is 1 − ε on the true class plus ε/C on every class.
        margin: m ≥ 0, subtracted from the true class's logit before the softmax (as AM-Softmax does with cosines).
    Returns: scalar, nats, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: label smoothing: Szegedy et al. 2016, arXiv:1512.00567; margin: Wang et al. 2018, arXiv:1801.05599.
    """
    check_matrix("logits", logits, "[N, C]")
    check_shape("labels", labels, (len(logits),), "one per row of logits")
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing = {label_smoothing}: expected a number from 0 to below 1")
    check_not_negative("margin", margin)
    with torch.autocast(logits.device.type, enabled=False):
        logits = to_full_precision(logits)
        if margin > 0:
            taken_off = torch.full_like(labels, -margin, dtype=logits.dtype).unsqueeze(1)
            logits = logits.scatter_add(1, labels.unsqueeze(1), taken_off)
        return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def large_margin_loss(
    features: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    *,
    angle_margin: int,
    label_smoothing: float = 0.0,
    margin: float = 0.0,
) -> Tensor:
    """Compute cross-entropy with the margin of L-Softmax: the angle θ to the own class vector is multiplied by m.

    The logit of the true class, ‖w‖‖x‖cos θ + b, becomes ‖w‖‖x‖ψ(θ) + b with ψ(θ) = (−1)^k cos(mθ) − 2k for θ from
    kπ/m to (k + 1)π/m. ψ is continuous and decreases, but its derivative jumps at each kπ/m.

    Args:
        features: [N, d], the inputs x of the last layer; weight: [C, d]; bias: [C].
        labels: [N], classes from 0.
        angle_margin: m ≥ 1; 1 is plain cross-entropy.
        label_smoothing, margin: as in `cross_entropy_loss`.
    Returns: scalar, nats, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: Liu et al. 2016, eq. 4–6, arXiv:1612.02295, without the bias there and with annealing, which is left out.
    """
    if angle_margin < 1:
        raise ValueError(f"angle_margin = {angle_margin}: expected an integer from 1")
    with torch.autocast(features.device.type, enabled=False):
        x, w = to_full_precision(features), to_full_precision(weight)
        logits = torch.nn.functional.linear(x, w, bias.to(w))
        own = w[labels]  # [N, d]
        scale = x.norm(dim=1) * own.norm(dim=1)
        cosine = (x * own).sum(1) / scale.clamp(min=torch.finfo(x.dtype).tiny)
        edges = torch.arange(1, angle_margin, device=x.device, dtype=x.dtype) * (math.pi / angle_margin)
        k = (cosine.detach().unsqueeze(1) <= edges.cos()).sum(1)
        # cos(mθ) is the Chebyshev polynomial of cos θ, whose gradient is finite where that of θ is not.
        before, multiple = torch.ones_like(cosine), cosine
        for _ in range(angle_margin - 1):
            before, multiple = multiple, 2 * cosine * multiple - before
        psi = torch.where(k % 2 == 0, multiple, -multiple) - 2 * k
        moved = (scale * (psi - cosine)).unsqueeze(1)
        logits = logits.scatter_add(1, labels.unsqueeze(1), moved)
    return cross_entropy_loss(logits, labels, label_smoothing=label_smoothing, margin=margin)


def mix(vectors: Tensor, partners: Tensor, share: float | Tensor) -> Tensor:
    """Mix each vector with that of its partner: share·v_i + (1 − share)·v_partner(i).

    Args:
        vectors: [N, H].
        partners: [N], row number of each vector's partner.
        share: in [0, 1], a number or a 0-d tensor, drawn from Beta(a, a) by the caller.
    Returns: [N, H] in the precision of the vectors.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: Zhang et al. 2018, arXiv:1710.09412.
    """
    share = _checked_share(len(vectors), partners, share)
    return share * vectors + (1 - share) * vectors[partners]


def mixup_loss(logits: Tensor, labels: Tensor, partners: Tensor, share: float | Tensor) -> Tensor:
    """Compute cross-entropy of mixed examples against both labels: share·CE(own) + (1 − share)·CE(partner).

    Args:
        logits: [N, C] of the mixed vectors, see `mix`.
        labels: [N], of the examples before mixing.
        partners, share: as given to `mix`.
    Returns: scalar, nats, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: share = 1 is plain cross-entropy.
    Source: Zhang et al. 2018, arXiv:1710.09412.
    """
    check_matrix("logits", logits, "[N, C]")
    check_shape("labels", labels, (len(logits),), "one per row of logits")
    share = _checked_share(len(logits), partners, share)
    return share * cross_entropy_loss(logits, labels) + (1 - share) * cross_entropy_loss(logits, labels[partners])


def cutmix_loss(logits: Tensor, labels: Tensor, partners: Tensor, shares: Tensor) -> Tensor:
    """Compute cross-entropy of mixed texts against both labels, the mean of share·CE(own) + (1 − share)·CE(partner).

    Args:
        logits: [N, C] of the mixed texts.
        labels: [N], of the texts before mixing.
        partners: [N], row number of each text's partner.
        shares: [N], in [0, 1]; share of each text's own tokens.
    Returns: scalar, nats, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: Yun et al. 2019, eq. 1, arXiv:1905.04899.
    """
    check_matrix("logits", logits, "[N, C]")
    for name, values in (("labels", labels), ("partners", partners), ("shares", shares)):
        check_shape(name, values, (len(logits),), "one per row of logits")
    with torch.autocast(logits.device.type, enabled=False):
        logits = to_full_precision(logits)
        shares = shares.to(logits)
        own, partner = (
            torch.nn.functional.cross_entropy(logits, one, reduction="none") for one in (labels, labels[partners])
        )
        return (shares * own + (1 - shares) * partner).mean()


def _checked_share(n: int, partners: Tensor, share: float | Tensor) -> float:
    check_shape("partners", partners, (n,), "one per example")
    if isinstance(share, torch.Tensor) and share.ndim:
        raise ValueError(f"share of shape {tuple(share.shape)}: expected a number or a tensor without axes")
    # A Python number does not change the precision of the tensor it multiplies.
    if not 0 <= (number := float(share)) <= 1:
        raise ValueError(f"share = {number}: expected a number from 0 to 1")
    return number


def cross_entropy_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    if given.mixed is not None:
        partners, share = given.mixed
        loss = cutmix_loss if share.ndim else mixup_loss
        return mean_of([loss(logits, labels, partners, share) for logits in given.logits])
    smoothing, margin = number(settings, "label_smoothing"), number(settings, "margin")
    if given.last:
        loss = partial(large_margin_loss, angle_margin=integer_setting(settings, "angle_margin"))
        return mean_of([loss(*last, labels, label_smoothing=smoothing, margin=margin) for last in given.last])
    return mean_of([cross_entropy_loss(x, labels, label_smoothing=smoothing, margin=margin) for x in given.logits])
