"""What pulls and pushes an anchor in a batch, and what another temperature would make of it, without training.

A batch holds one vector per text. Where the loss contrasts V views of a text, its vector represents all of them: every
other text then counts V times, and the anchor's own V − 1 other views lie where the anchor is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import ForceLaw
from core.catalogue.losses import SUPCON
from core.losses.checks import check_positive, check_shape
from core.losses.unit import unit_rows
from core.registry import load

# The strongest negatives whose share of the push is reported.
TOP_SHARE = 0.05
USUAL = ForceLaw(SUPCON, SUPCON.defaults)


class Candidates(NamedTuple):
    """What anchors are compared with. A candidate is one vector, which may stand for several views of its text.

    Attributes:
        similarity: [A, M] cosines, or dot products where a loss takes vectors as they are.
        copies: [A, M] how many views each candidate stands for; 0 where it is none.
        own, alike: [A, M] how many of them are the anchor's own other views, and views of other texts of its class.
    """

    similarity: Tensor
    copies: Tensor
    own: Tensor
    alike: Tensor

    def log_p(self, temperature: float) -> Tensor:
        """Return the log of one view's share of the softmax over all candidates, [A, M]; −∞ where there is none."""
        logits = (self.similarity / temperature).masked_fill(self.copies == 0, -math.inf)
        return logits - (logits + self.copies.log()).logsumexp(1, keepdim=True)


class Forces(NamedTuple):
    """What acts on each anchor: ∂L_i/∂z_i = Σ_j coefficient_ij z_j, with all else held fixed.

    A step down the loss therefore moves i along −coefficient_ij z_j: towards j where it is below 0, away where above.

    Attributes:
        losses: [A] in nats, 0 without a positive.
        coefficients: [A, M] ∂L_i/∂s_ij; all zero in a row without a positive.
        p: [A, M] softmax over the candidates of each row, views of one text together; None without a temperature.
        X: [A, M] what the loss asks p to be, as coefficient = (p − X)/τ; 0 for negatives; None without a temperature.
        positives, negatives: [A, M] bool.
        has_positive: [A] bool.
    """

    losses: Tensor
    coefficients: Tensor
    p: Tensor | None
    X: Tensor | None
    positives: Tensor
    negatives: Tensor
    has_positive: Tensor


class BatchForces(NamedTuple):
    """The forces on every text of a batch, [N] and [N, N] each as in `Forces`, and the similarities behind them."""

    similarity: Tensor
    losses: Tensor
    coefficients: Tensor
    p: Tensor | None
    X: Tensor | None
    positives: Tensor
    negatives: Tensor
    has_positive: Tensor


class PushSpread(NamedTuple):
    """How the push is spread over the negatives; means over the anchors that have a positive and a negative.

    Attributes:
        losses: nats, mean over anchors that have a positive, in the order of the law's `symbols`.
        entropy: of p over the candidate texts, nats; ln(N − 1) where all count alike and none has a further view.
            NaN without a temperature.
        effective_negatives: exp of the entropy of the negatives' shares of the push, 1 to their number.
        top_share: share of the push that the strongest 5% of the negatives give, at least one of them.
    """

    losses: tuple[float, ...]
    entropy: float
    effective_negatives: float
    top_share: float


def forces_on(candidates: Candidates, law: ForceLaw, temperature: float | None = None) -> Forces:
    """Return what acts on anchors, from the derivative of each one's loss by its similarities.

    Args:
        temperature: instead of the law's own.
    """
    settings = law.settings if temperature is None else {**law.settings, "temperature": temperature}
    positives = (candidates.own + (candidates.alike if law.entry.uses_labels else 0)) > 0
    has_positive = positives.any(1)
    # A loss need not say what it is for an anchor without a positive: 0, and no force.
    some = Candidates(*(part[has_positive] for part in candidates))
    similarity = some.similarity.detach().requires_grad_()
    with torch.enable_grad():
        own = load(law.forces.anchor_losses)(some._replace(similarity=similarity), settings)
        (gradient,) = torch.autograd.grad(own.sum(), similarity)
    losses = torch.zeros_like(candidates.similarity[:, 0])
    losses[has_positive] = own.detach()
    coefficients = torch.zeros_like(candidates.similarity)
    coefficients[has_positive] = gradient
    p = x = None
    if "temperature" in settings:
        tau = float(settings["temperature"])  # type: ignore[arg-type]
        p = candidates.log_p(tau).exp() * candidates.copies
        x = torch.where(positives, p - tau * coefficients, 0.0)
    return Forces(losses, coefficients, p, x, positives, (candidates.copies > 0) & ~positives, has_positive)


def batch_forces(
    features: Tensor, labels: Tensor, *, law: ForceLaw = USUAL, temperature: float | None = None
) -> BatchForces:
    """Return the forces on each text of a batch.

    Args:
        features: [N, d], any scale; normalised here where the law says so.
        labels: [N].
        temperature: > 0, unitless, instead of the law's own.
    Returns: in float64, for at a low temperature what is left for the negatives is too small for a float32.
    Raises: ValueError naming the argument, its value and what is expected.
    Source: Khosla et al. 2020, eq. 2–6, arXiv:2004.11362; Xuan & Zhang 2024, eq. 8–9; Gao et al. 2021, eq. 1.
    """
    if temperature is not None:
        check_positive("temperature", temperature)
    if features.ndim != 2:
        raise ValueError(f"features of shape {tuple(features.shape)}: expected [N, d]")
    check_shape("labels", labels, (len(features),), "one label per text")
    z = unit_rows(features.double()) if law.normalize else features.double()
    similarity, itself = z @ z.T, torch.eye(len(z), dtype=torch.float64)
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).double() - itself
    if law.second_views:
        candidates = Candidates(similarity, torch.ones_like(itself), itself, same)
    else:
        candidates = Candidates(similarity, law.views - itself, (law.views - 1) * itself, law.views * same)
    return BatchForces(similarity, *forces_on(candidates, law, temperature))


def push_spread(
    features: Tensor,
    labels: Tensor,
    *,
    law: ForceLaw = USUAL,
    temperature: float | None = None,
    anchor: int | None = None,
) -> PushSpread:
    """Return how the push is spread, for one anchor or on average over the batch.

    Returns: NaN where no anchor has what a measure needs.
    Raises: ValueError as in `batch_forces`.
    """
    found = batch_forces(features, labels, temperature=temperature, law=law)
    chosen = torch.ones_like(found.has_positive)
    if anchor is not None:
        chosen = torch.arange(len(chosen)) == anchor
    losses = [
        found.losses if variant == law else batch_forces(features, labels, temperature=temperature, law=variant).losses
        for variant in law.variants
    ]
    means = [float(loss[found.has_positive & chosen].mean()) for loss in losses]
    anchors = found.has_positive & found.negatives.any(1) & chosen
    negatives = found.negatives[anchors]
    if found.p is None:
        push = found.coefficients[anchors].clamp(min=0).masked_fill(~negatives, 0.0)
        weights, entropy = push / push.sum(1, keepdim=True), math.nan
    else:
        tau = temperature if temperature is not None else law.temperature
        assert tau is not None
        # Of the logarithms, since a share may be too small for a number.
        weights = (found.similarity[anchors] / tau).masked_fill(~negatives, -math.inf).softmax(1)
        entropy = float(_entropy(found.p[anchors]).mean())
    return PushSpread(
        tuple(means),
        entropy,
        float(_entropy(weights).exp().mean()),
        float(_top_share(weights, negatives.sum(1)).mean()),
    )


def push_spreads(
    features: Tensor, labels: Tensor, temperatures: Sequence[float], *, law: ForceLaw = USUAL
) -> list[PushSpread]:
    """`push_spread` of a batch at each of several temperatures."""
    return [push_spread(features, labels, temperature=tau, law=law) for tau in temperatures]


def _entropy(shares: Tensor) -> Tensor:
    """Of each row, nats."""
    return torch.special.entr(shares).sum(1)


def _top_share(shares: Tensor, sizes: Tensor) -> Tensor:
    """What the largest `TOP_SHARE` of each row's `sizes` entries sum to, at least one of them."""
    strongest = (TOP_SHARE * sizes).ceil().clamp(min=1).long() - 1
    return shares.sort(1, descending=True).values.cumsum(1).gather(1, strongest.unsqueeze(1)).squeeze(1)
