"""(1 − λ)·CE + λ·SCL, and its additive form."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from core.catalogue.losses import LOSSES
from core.losses import scl_objective
from core.losses.evaluate import Contrasted, TermInput
from core.losses.supcon import supcon_loss
from core.registry import load

LABELS = torch.tensor([0, 1, 0, 1, 1])


@pytest.fixture
def logits() -> Tensor:
    return torch.randn(5, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.fixture
def features() -> Tensor:
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.mark.parametrize("combine", ["convex", "additive"])
def test_weight_zero_is_exactly_cross_entropy(logits: Tensor, features: Tensor, combine: str) -> None:
    loss = scl_objective(logits, LABELS, features, weight=0, combine=combine)
    loss.backward()
    assert loss.item() == F.cross_entropy(logits, LABELS).item()
    assert features.grad is None or (features.grad == 0).all()
    assert (logits.grad != 0).any()


@pytest.mark.parametrize(("combine", "ce_share"), [("convex", 0.3), ("additive", 1.0)])
def test_the_parts_are_mixed_by_the_weight(logits: Tensor, features: Tensor, combine: str, ce_share: float) -> None:
    for given in (features, torch.stack([features, features * 2 + 1], dim=1)):
        loss = scl_objective(logits, LABELS, given, weight=0.7, temperature=0.2, combine=combine)
        expected = ce_share * F.cross_entropy(logits, LABELS) + 0.7 * supcon_loss(given, LABELS, temperature=0.2)
        assert loss.item() == pytest.approx(expected.item())


def test_the_sum_over_anchors_is_that_of_a_slow_loop(logits: Tensor, features: Tensor) -> None:
    """Gunel et al. 2021, eq. 1–3: with B anchors, λ weighs SCL B times as much as with their mean."""
    z = (features / features.norm(dim=1, keepdim=True)).double().tolist()
    dots = [[sum(a * b for a, b in zip(one, other, strict=True)) / 0.3 for other in z] for one in z]
    total = 0.0
    for i in range(5):
        positives = [j for j in range(5) if j != i and LABELS[j] == LABELS[i]]
        below = math.log(sum(math.exp(dots[i][j]) for j in range(5) if j != i))
        total -= sum(dots[i][j] - below for j in positives) / len(positives)
    loss = scl_objective(logits, LABELS, features, weight=0.9, reduction="sum")
    assert loss.item() == pytest.approx(0.1 * F.cross_entropy(logits, LABELS).item() + 0.9 * total, rel=1e-5)
    entry = LOSSES["supcon"]
    term = load(entry.compute)(
        TermInput(layers=(Contrasted(features.unsqueeze(1)),)), LABELS, {**entry.defaults, "reduction": "sum"}
    )
    assert term.item() == pytest.approx(total, rel=1e-5)
