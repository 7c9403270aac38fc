"""Pull and push on the anchors of a batch, at any temperature and without training.

A batch holds one vector per text. If the loss contrasts V views of a text, the vector represents all of them: every
other text counts V times, and the anchor's own V − 1 other views coincide with the anchor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import ForceLaw, PushSpread
from core.catalogue.losses import SUPCON
from core.losses.arguments import check_matrix, check_positive, check_shape, unit_rows
from core.registry import load

# The fraction of strongest negatives whose share of the push is reported.
TOP_SHARE = 0.05
USUAL = ForceLaw(SUPCON, SUPCON.defaults)


class Candidates(NamedTuple):
    """The candidates of anchors. A candidate is one vector, which may represent several views of its text.

    Attributes:
        similarity: [A, M] cosines, or dot products for a loss on unnormalised vectors.
        copies: [A, M] number of views that each candidate represents; 0 if it is not a candidate.
        own, alike: [A, M] number of these views that belong to the anchor's text, and to other texts of its class.
    """

    similarity: Tensor
    copies: Tensor
    own: Tensor
    alike: Tensor

    def log_p(self, temperature: float) -> Tensor:
        """Return the log of one view's share of the softmax over all candidates, [A, M]; −∞ for non-candidates."""
        logits = (self.similarity / temperature).masked_fill(self.copies == 0, -math.inf)
        total = (logits + self.copies.log()).logsumexp(1, keepdim=True)
        return logits - torch.where(total.isneginf(), 0.0, total)


class AnchorForces(NamedTuple):
    """The forces on each anchor: ∂L_i/∂z_i = Σ_j coefficient_ij z_j, with all else held fixed.

    A gradient step moves i along −coefficient_ij z_j: towards j if the coefficient is negative, away if positive.

    Attributes:
        similarity: [A, M] as in the candidates.
        losses: [A] in nats, 0 without a positive.
        coefficients: [A, M] ∂L_i/∂s_ij; all zero in a row without a positive.
        p: [A, M] softmax over the candidates of each row, summed over the views of a text; None without a softmax.
        X: [A, M] the target of p: coefficient = (p − X)/τ; 0 for negatives; None without a softmax.
        positives, negatives: [A, M] bool.
        has_positive: [A] bool.
    """

    similarity: Tensor
    losses: Tensor
    coefficients: Tensor
    p: Tensor | None
    X: Tensor | None
    positives: Tensor
    negatives: Tensor
    has_positive: Tensor


def forces_on(candidates: Candidates, law: ForceLaw, temperature: float | None = None) -> AnchorForces:
    """Compute the forces on anchors by differentiating each loss with respect to its similarities.

    Args:
        temperature: > 0, unitless; replaces that of the law.
    Raises: ValueError for an invalid temperature.
    """
    if temperature is not None:
        check_positive("temperature", temperature)
    if law.settings.get("label_filter"):
        candidates = candidates._replace(copies=candidates.copies.masked_fill(candidates.alike > 0, 0))
    positives = _positives(candidates, law)
    has_positive = positives.any(1)
    similarity = candidates.similarity.detach().requires_grad_()
    with torch.enable_grad():
        losses = _losses(candidates._replace(similarity=similarity), law, temperature)
        (coefficients,) = torch.autograd.grad(losses.sum(), similarity, allow_unused=True, materialize_grads=True)
    p = x = None
    tau = law.temperature if temperature is None else temperature
    if law.forces.softmax and tau is not None:
        p = candidates.log_p(tau).exp() * candidates.copies
        x = torch.where(positives, p - tau * coefficients, 0.0)
    negatives = (candidates.copies > 0) & ~positives
    return AnchorForces(candidates.similarity, losses.detach(), coefficients, p, x, positives, negatives, has_positive)


def _positives(candidates: Candidates, law: ForceLaw) -> Tensor:
    return (candidates.own + candidates.alike if law.entry.uses_labels else candidates.own) > 0


def _losses(candidates: Candidates, law: ForceLaw, temperature: float | None) -> Tensor:
    """Return the losses [A] in nats. An anchor without a positive has loss 0 and no force."""
    settings = law.settings if temperature is None else {**law.settings, "temperature": temperature}
    has_positive = _positives(candidates, law).any(1)
    own = load(law.forces.anchor_losses)(Candidates(*(part[has_positive] for part in candidates)), settings)
    return candidates.similarity.new_zeros(len(has_positive)).index_put((has_positive,), own)


def _candidates(features: Tensor, labels: Tensor, law: ForceLaw) -> Candidates:
    """Return the candidates of a batch in which every text is an anchor and a candidate.

    Raises: ValueError naming the argument, its value and the expected values.
    """
    check_matrix("features", features)
    check_shape("labels", labels, (len(features),), "one label per text")
    z = unit_rows(features.double()) if law.normalize else features.double()
    similarity, itself = z @ z.T, torch.eye(len(z), dtype=torch.float64)
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).double() - itself
    if law.second_views:
        return Candidates(similarity, torch.ones_like(itself), itself, same)
    return Candidates(similarity, law.views - itself, (law.views - 1) * itself, law.views * same)


def batch_forces(
    features: Tensor, labels: Tensor, *, law: ForceLaw = USUAL, temperature: float | None = None
) -> AnchorForces:
    """Compute the forces on each text of a batch, with A = M = N.

    Args:
        features: [N, d], any scale; normalised here if the law normalises.
        labels: [N].
        temperature: > 0, unitless; replaces that of the law.
    Returns: in float64; at a low temperature the negatives' shares are too small for float32.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: Khosla et al. 2020, eq. 2–6, arXiv:2004.11362; Xuan & Zhang 2024, eq. 8–9; Gao et al. 2021, eq. 1.
    """
    return forces_on(_candidates(features, labels, law), law, temperature)


def push_spread(
    features: Tensor,
    labels: Tensor,
    *,
    law: ForceLaw = USUAL,
    temperature: float | None = None,
    anchor: int | None = None,
) -> PushSpread:
    """Compute the distribution of the push, for one anchor or on average over the batch.

    Returns: measures, NaN if no anchor defines them.
    Raises: ValueError as in `batch_forces`.
    """
    candidates = _candidates(features, labels, law)
    found = forces_on(candidates, law, temperature)
    chosen = torch.ones_like(found.has_positive)
    if anchor is not None:
        chosen = torch.arange(len(chosen)) == anchor
    losses = [found.losses, *(_losses(candidates, variant, temperature) for variant in law.variants[1:])]
    means = [float(loss[found.has_positive & chosen].mean()) for loss in losses]
    push = found.coefficients.clamp(min=0).masked_fill(~found.negatives, 0.0)
    total = push.sum(1)
    anchors = found.has_positive & (total > 0) & chosen
    shares = push[anchors] / total[anchors].unsqueeze(1)
    # The strongest TOP_SHARE of each anchor's negatives, at least one of them.
    last = (TOP_SHARE * found.negatives[anchors].sum(1)).ceil().clamp(min=1).long() - 1
    strongest = shares.sort(1, descending=True).values.cumsum(1).gather(1, last.unsqueeze(1))
    return PushSpread(
        tuple(means),
        math.nan if found.p is None else float(_entropy(found.p[anchors]).mean()),
        float(_entropy(shares).exp().mean()),
        float(strongest.mean()),
    )


def losses_at_mean_positive(
    features: Tensor, labels: Tensor, *, law: ForceLaw = USUAL, temperature: float | None = None
) -> tuple[float, ...]:
    """Compute the losses of a batch in which the mean of an anchor's positives takes the place of each of them.

    Args: as in `batch_forces`.
    Returns: nats, mean over anchors that have a positive, in the order of the law's `variants`.
    Source: Khosla et al. 2020, section 3.2.2: the gradients of L_in and L_out are then equal.
    """
    candidates = _candidates(features, labels, law)
    views = candidates.own + candidates.alike if law.entry.uses_labels else candidates.own  # [N, N]
    mean = (views * candidates.similarity).sum(1, keepdim=True) / views.sum(1, keepdim=True).clamp(min=1)
    replaced = candidates._replace(similarity=torch.where(views > 0, mean, candidates.similarity))
    has_positive = (views > 0).any(1)
    return tuple(float(_losses(replaced, one, temperature)[has_positive].mean()) for one in law.variants)


def _entropy(shares: Tensor) -> Tensor:
    """Return the entropy of each row in nats."""
    return torch.special.entr(shares).sum(1)
