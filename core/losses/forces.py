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
from core.losses.checks import check_positive, check_shape
from core.losses.unit import unit_rows

# The strongest negatives whose share of the push is reported.
TOP_SHARE = 0.05
SUPCON = ForceLaw()


class BatchForces(NamedTuple):
    """The forces on every text of a batch: ∂L_i/∂z_i = Σ_j coefficient_ij z_j, with all else held fixed.

    A step down the loss therefore moves i along −coefficient_ij z_j: towards j where it is below 0, away where above.

    Attributes:
        similarity: [N, N] cosines, or dot products where the law takes vectors as they are.
        p: [N, N] softmax over the candidates of each row, views of one text together.
        X: [N, N] what the loss wants p to be; 0 for negatives.
        coefficients: [N, N] (p − X)/τ; a row sums to 0, and is all zero without a positive.
        losses: [N] in nats, 0 without a positive.
        has_positive: [N] bool.
        negatives: [N, N] bool.
    """

    similarity: Tensor
    p: Tensor
    X: Tensor
    coefficients: Tensor
    losses: Tensor
    has_positive: Tensor
    negatives: Tensor


class PushSpread(NamedTuple):
    """How the push is spread over the negatives; means over the anchors that have a positive and a negative.

    Attributes:
        losses: nats, mean over anchors that have a positive, in the order of the law's `losses`.
        entropy: of p over the candidate texts, nats; ln(N − 1) where all count alike and none has a further view.
        effective_negatives: exp of the entropy of p among the negatives alone, 1 to their number.
        top_share: share of the push that the strongest 5% of the negatives give, at least one of them.
    """

    losses: tuple[float, ...]
    entropy: float
    effective_negatives: float
    top_share: float


def batch_forces(features: Tensor, labels: Tensor, *, temperature: float, law: ForceLaw = SUPCON) -> BatchForces:
    """The forces on each text of a batch.

    Args:
        features: [N, d], any scale; normalised here where the law says so.
        labels: [N].
        temperature: > 0, unitless.
    Returns: in float64, for at a low temperature what is left for the negatives is too small for a float32.
    Raises: ValueError naming the argument, its value and what is expected.
    Source: Khosla et al. 2020, eq. 2–6, arXiv:2004.11362; Xuan & Zhang 2024, eq. 8–9; Gao et al. 2021, eq. 1.
    """
    check_positive("temperature", temperature)
    if features.ndim != 2:
        raise ValueError(f"features of shape {tuple(features.shape)}: expected [N, d]")
    check_shape("labels", labels, (len(features),), "one label per text")
    z = unit_rows(features.double()) if law.normalize else features.double()
    similarity = z @ z.T
    count = _copies(len(z), law)  # [N, N]
    candidates = count > 0
    positives = candidates & _related(labels, law)
    has_positive = positives.any(1)
    logits = (similarity / temperature + count.log()).masked_fill(~candidates, -math.inf)  # log of count · exp(s)
    log_p = _log_softmax(logits)
    x = _targets(logits, count, positives, law)
    coefficients = torch.where(has_positive.unsqueeze(1), (log_p.exp() - x) / temperature, 0.0)
    losses = torch.where(has_positive, _losses(log_p, x, count, positives, law), 0.0)
    return BatchForces(similarity, log_p.exp(), x, coefficients, losses, has_positive, candidates & ~positives)


def push_spread(
    features: Tensor, labels: Tensor, *, temperature: float, law: ForceLaw = SUPCON, anchor: int | None = None
) -> PushSpread:
    """How the push is spread at a temperature, for one anchor or on average over the batch.

    Returns: NaN where no anchor has what a measure needs.
    Raises: ValueError as in `batch_forces`.
    """
    found = batch_forces(features, labels, temperature=temperature, law=law)
    chosen = torch.ones_like(found.has_positive)
    if anchor is not None:
        chosen = torch.arange(len(chosen)) == anchor
    kinds = [law, *([law._replace(kind="in" if law.kind == "out" else "out")] if len(law.losses) > 1 else [])]
    losses = [found.losses] + [
        batch_forces(features, labels, temperature=temperature, law=other).losses for other in kinds[1:]
    ]
    means = [float(loss[found.has_positive & chosen].mean()) for loss in losses]
    anchors = found.has_positive & found.negatives.any(1) & chosen
    p, negatives = found.p[anchors], found.negatives[anchors]
    # Of the logarithms, since a share may be too small for a number.
    weights = _log_softmax(found.similarity[anchors] / temperature, negatives).exp()
    effective = _entropy(weights).exp()
    return PushSpread(
        tuple(means),
        float(_entropy(p).mean()),
        float(effective.mean()),
        float(_top_share(weights, negatives.sum(1)).mean()),
    )


def push_spreads(
    features: Tensor, labels: Tensor, temperatures: Sequence[float], *, law: ForceLaw = SUPCON
) -> list[PushSpread]:
    """`push_spread` of a batch at each of several temperatures."""
    return [push_spread(features, labels, temperature=tau, law=law) for tau in temperatures]


def _copies(n: int, law: ForceLaw) -> Tensor:
    """How often text j is a candidate of text i, [N, N]."""
    if law.kind == "simcse":
        return torch.ones(n, n, dtype=torch.float64)
    views = max(2 if law.kind == "dscl" else 1, law.views)
    return torch.full((n, n), float(views), dtype=torch.float64) - torch.eye(n, dtype=torch.float64)


def _related(labels: Tensor, law: ForceLaw) -> Tensor:
    if not law.by_label:
        return torch.eye(len(labels), dtype=torch.bool)
    return labels.unsqueeze(0) == labels.unsqueeze(1)


def _targets(logits: Tensor, count: Tensor, positives: Tensor, law: ForceLaw) -> Tensor:
    """X [N, N], the share of p that the loss asks for; a row sums to 1, or is zero without a positive."""
    weights = torch.where(positives, count, 0.0)
    if law.kind == "in":
        return _log_softmax(logits, positives).exp() * positives
    if law.kind == "dscl":
        return _decoupled(weights, law.alpha)
    return weights / weights.sum(1, keepdim=True).clamp(min=1.0)


def _decoupled(weights: Tensor, alpha: float | str) -> Tensor:
    """α on the own other views, 1 − α spread over the others of the class; all on the own where there are no others."""
    own = weights.diagonal()  # [N], V − 1
    others = weights - torch.diag(own)
    total = others.sum(1)
    share = own / (own + total) if isinstance(alpha, str) else torch.full_like(own, alpha)
    share = torch.where(total > 0, share, 1.0)
    spread = (1 - share).unsqueeze(1) * others / total.clamp(min=1.0).unsqueeze(1)
    return spread + torch.diag(share)


def _losses(log_p: Tensor, x: Tensor, count: Tensor, positives: Tensor, law: ForceLaw) -> Tensor:
    """[N], nats; p of one view is that of its text, divided by how often it counts."""
    one = (log_p - count.log()).masked_fill(~positives, 0.0)
    if law.kind != "in":
        return -(x * one).sum(1)
    size = torch.where(positives, count, 0.0).sum(1).clamp(min=1.0)
    reachable = log_p.masked_fill(~positives, -math.inf).logsumexp(1)
    return size.log() - reachable


def _log_softmax(logits: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Over the allowed entries of each row (None: those above −∞); −∞ elsewhere and in a row without any."""
    kept = logits if allowed is None else logits.masked_fill(~allowed, -math.inf)
    total = kept.logsumexp(1, keepdim=True)
    return torch.where(kept.isneginf(), -math.inf, kept - total)


def _entropy(shares: Tensor) -> Tensor:
    """Of each row, nats."""
    return torch.special.entr(shares).sum(1)


def _top_share(shares: Tensor, sizes: Tensor) -> Tensor:
    """What the largest `TOP_SHARE` of each row's `sizes` entries sum to, at least one of them."""
    strongest = (TOP_SHARE * sizes).ceil().clamp(min=1).long() - 1
    return shares.sort(1, descending=True).values.cumsum(1).gather(1, strongest.unsqueeze(1)).squeeze(1)
