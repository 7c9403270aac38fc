"""A list of weighted terms: the total, the parts, and what a weight of 0 costs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from core.losses.objective import TERMS, Objective, ObjectiveValue, Term
from core.losses.registry import LOSSES
from core.losses.scl import cross_entropy_loss
from core.losses.supcon import supcon_loss

LABELS = torch.tensor([0, 1, 0, 1, 1])


def random_batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(5, 4).requires_grad_(), torch.randn(5, 2).requires_grad_()


def evaluated(ce: float, scl: float) -> tuple[ObjectiveValue, Tensor, Tensor]:
    features, logits = random_batch()
    objective = Objective([Term("cross_entropy", ce, {}), Term("supcon", scl, {"temperature": 0.2})])
    return objective(features, logits, LABELS), features, logits


def test_the_total_is_the_weighted_sum_of_the_parts() -> None:
    value, features, logits = evaluated(0.25, 2.0)
    assert value.parts["cross_entropy"].item() == cross_entropy_loss(logits, LABELS).item()
    assert value.parts["supcon"].item() == supcon_loss(features, LABELS, temperature=0.2).item()
    expected = 0.25 * value.parts["cross_entropy"] + 2.0 * value.parts["supcon"]
    assert value.total.item() == pytest.approx(expected.item())


def test_a_term_of_weight_zero_is_reported_without_a_graph() -> None:
    value, features, logits = evaluated(1.0, 0.0)
    assert value.parts["supcon"].item() == supcon_loss(features, LABELS, temperature=0.2).item()
    assert not value.parts["supcon"].requires_grad
    value.total.backward()
    assert features.grad is None
    assert logits.grad is not None


def test_grad_mode_is_back_after_a_term_of_weight_zero() -> None:
    evaluated(1.0, 0.0)
    assert torch.is_grad_enabled()


def test_every_registered_loss_can_be_evaluated() -> None:
    assert TERMS.keys() == LOSSES.keys()
    for name, entry in LOSSES.items():
        features, logits = random_batch()
        parameters = {p.name: p.default for p in entry.parameters}
        total = Objective([Term(name, 1.0, parameters)])(features, logits, LABELS).total
        assert total.isfinite()
        assert total.requires_grad
