"""R-Drop: a penalty on the disagreement between two dropout passes over the same batch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_matrix, check_not_negative, check_shape, to_full_precision
from core.losses.cross_entropy import cross_entropy_loss
from core.losses.evaluate import TermInput
from core.parameters import number


class RDropLoss(NamedTuple):
    """The R-Drop loss and its parts: total = ce + α·kl; scalars, nats."""

    total: Tensor
    ce: Tensor
    kl: Tensor


def rdrop_loss(logits1: Tensor, logits2: Tensor, labels: Tensor, *, alpha: float = 1.0) -> RDropLoss:
    """Compute ½(CE₁ + CE₂) + α·½(KL(1‖2) + KL(2‖1)).

    Args:
        logits1: [N, C] of one dropout pass.
        logits2: [N, C] of another dropout pass over the same examples.
        labels: [N].
        alpha: ≥ 0. The paper's loss with α is twice this loss with α/2.
    Returns: total, ce and kl, means over the batch, nats, in float32 or better; gradients flow into both passes.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: equal logits give kl = 0.
    Source: Liang et al. 2021, eq. 4, arXiv:2106.14448.
    """
    check_matrix("logits1", logits1, "[N, C]")
    check_shape("logits2", logits2, tuple(logits1.shape), "the shape of logits1")
    check_not_negative("alpha", alpha)
    ce = 0.5 * (cross_entropy_loss(logits1, labels) + cross_entropy_loss(logits2, labels))
    with torch.autocast(logits1.device.type, enabled=False):
        log_p, log_q = (to_full_precision(logits).log_softmax(1) for logits in (logits1, logits2))
        # The entropies cancel: KL(p‖q) + KL(q‖p) = Σ (p − q)(log p − log q).
        kl = 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(1).mean()
    return RDropLoss(ce + alpha * kl, ce, kl)


def rdrop_term(given: TermInput, labels: Tensor, settings: Settings) -> tuple[Tensor, dict[str, Tensor]]:
    first, second = given.logits
    total, ce, kl = rdrop_loss(first, second, labels, alpha=number(settings, "alpha"))
    return total, {"ce": ce, "kl": kl}
