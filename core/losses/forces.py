"""What pulls and pushes an anchor in a batch, and what another temperature would make of it, without training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.losses.supcon import Variant, contrastive_coefficients, supcon_loss
from core.losses.unit import in_full_precision, unit_rows

# The strongest negatives whose share of the push is told.
TOP_SHARE = 0.05


class Forces(NamedTuple):
    """What acts on one anchor: ∂L_i/∂z_i = Σ_j coefficient_j z_j, so a step down the loss goes the other way.

    Attributes:
        similarity: [M] cosines with the anchor, itself included.
        p: [M] softmax over all others; 0 at the anchor.
        coefficients: [M] below 0 for what attracts, above 0 for what repels; they sum to 0.
        loss_in, loss_out: this anchor's, in nats; 0 without a positive.
    """

    similarity: Tensor
    p: Tensor
    coefficients: Tensor
    loss_in: float
    loss_out: float


class PushSpread(NamedTuple):
    """How the push is spread over the negatives; means over the anchors that have a positive and a negative.

    Attributes:
        loss_in, loss_out: nats, mean over anchors that have a positive.
        entropy: of p over all candidates, nats; ln(M − 1) where all count alike.
        effective_negatives: exp of the entropy of p among the negatives alone, 1 to their number.
        top_share: share of the push that the strongest 5 % of the negatives give, at least one of them.
    """

    loss_in: float
    loss_out: float
    entropy: float
    effective_negatives: float
    top_share: float


def forces_on(features: Tensor, labels: Tensor, anchor: int, *, temperature: float, variant: Variant = "out") -> Forces:
    """The forces on one example of a batch.

    Args:
        features: [M, d], any scale; normalised here.
        labels: [M].
        anchor: its place in the batch.
        temperature: > 0, unitless.
        variant: whose coefficients, those of L_out or of L_in.
    Raises: ValueError as in `supcon_loss`, and for an anchor that is not in the batch.
    Source: Khosla et al. 2020, eq. 4–6, arXiv:2004.11362.
    """
    if not 0 <= anchor < len(labels):
        raise ValueError(f"anchor = {anchor}: expected a place from 0 to {len(labels) - 1}")
    found = contrastive_coefficients(features, labels, temperature=temperature, variant=variant)
    z = unit_rows(in_full_precision(features))
    losses = (_losses(features, labels, temperature, kind)[anchor] for kind in ("in", "out"))
    return Forces(z @ z[anchor], found.p[anchor], found.coefficients[anchor], *(float(loss) for loss in losses))


def push_spread(features: Tensor, labels: Tensor, *, temperature: float, anchor: int | None = None) -> PushSpread:
    """How the push is spread at a temperature, for one anchor or on average over the batch.

    Returns: NaN where no anchor has what a measure needs.
    Raises: ValueError as in `supcon_loss`.
    """
    # In double precision: at a low temperature what is left for the negatives is too small for a float32.
    features = features.double()
    p = contrastive_coefficients(features, labels, temperature=temperature).p  # [M, M]
    cosines = unit_rows(features) @ unit_rows(features).T
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    has_positive = same.sum(1) > 1
    has_both = has_positive & ~same.all(1)
    chosen = torch.zeros_like(has_both) if anchor is not None else torch.ones_like(has_both)
    if anchor is not None:
        chosen[anchor] = True
    losses = (_losses(features, labels, temperature, kind)[has_positive & chosen] for kind in ("in", "out"))
    anchors = has_both & chosen
    rows = zip(p[anchors], cosines[anchors], ~same[anchors], strict=True)
    measures = [_row_measures(row, (near[kept] / temperature).softmax(0)) for row, near, kept in rows]
    means = torch.tensor(measures or [(math.nan,) * 3], dtype=torch.float64).mean(0)
    return PushSpread(*(float(loss.mean()) for loss in losses), *means.tolist())


def push_spreads(
    features: Tensor, labels: Tensor, temperatures: Sequence[float], *, anchor: int | None = None
) -> list[PushSpread]:
    """`push_spread` at each of several temperatures."""
    return [push_spread(features, labels, temperature=tau, anchor=anchor) for tau in temperatures]


def _losses(features: Tensor, labels: Tensor, temperature: float, variant: Variant) -> Tensor:
    return supcon_loss(features, labels, temperature=temperature, variant=variant, reduction="none")


def _row_measures(row: Tensor, shares: Tensor) -> tuple[float, float, float]:
    """Entropy of a row, effective number of its negatives, and the strongest ones' part in the shares of the push."""
    strongest = shares.sort(descending=True).values[: math.ceil(TOP_SHARE * len(shares))]
    return _entropy(row), math.exp(_entropy(shares)), float(strongest.sum())


def _entropy(shares: Tensor) -> float:
    return float(torch.special.entr(shares.double()).sum())
