"""(1 − λ)·CE + λ·SCL, and its additive form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from core.losses import scl_objective
from core.losses.supcon import supcon_loss
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS = torch.tensor([0, 1, 0, 1, 1])


@each("combine", ["convex", "additive"])
def test_weight_zero_is_exactly_cross_entropy(combine: Any) -> None:
    logits, features = random_rows(5, 2).requires_grad_(), random_rows(5, 4, seed=1).requires_grad_()
    loss = scl_objective(logits, LABELS, features, weight=0, combine=combine)
    loss.backward()
    assert loss.item() == F.cross_entropy(logits, LABELS).item()
    assert features.grad is None or (features.grad == 0).all()
    assert (logits.grad != 0).any()


@each("reduction", ["mean", "sum"])  # Gunel et al. 2021, eq. 1–3, have the sum over the anchors
@each(("combine", "ce_share"), [("convex", 0.3), ("additive", 1.0)])
def test_the_parts_are_mixed_by_the_weight(combine: Any, ce_share: float, reduction: Any) -> None:
    logits, given = random_rows(5, 2), {"temperature": 0.2, "reduction": reduction}
    for features in (random_rows(5, 4, seed=1), random_rows(5, 2, 4, seed=2)):
        loss = scl_objective(logits, LABELS, features, weight=0.7, combine=combine, **given)
        expected = ce_share * F.cross_entropy(logits, LABELS) + 0.7 * supcon_loss(features, LABELS, **given)
        assert loss.item() == pytest.approx(expected.item())


def test_by_default_the_mean_at_0_3_is_mixed_in_convexly() -> None:
    logits, features = random_rows(5, 2), random_rows(5, 4, seed=1)
    expected = 0.1 * F.cross_entropy(logits, LABELS) + 0.9 * supcon_loss(features, LABELS, temperature=0.3)
    assert scl_objective(logits, LABELS, features, weight=0.9).item() == pytest.approx(expected.item())
