"""Gradient norms of the parts on the pooled vectors, against gradients taken one by one."""

from __future__ import annotations

import pytest
import torch

from core.losses.objective import Objective, Term
from core.training.gradients import pooled_gradients


def evaluated(weights: tuple[float, float]) -> tuple[dict[str, float], torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    pooled = torch.randn(6, 5, requires_grad=True)
    head, labels = torch.randn(5, 2), torch.tensor([0, 1, 0, 1, 1, 0])
    terms = [Term("cross_entropy", weights[0], {}), Term("supcon", weights[1], {"temperature": 0.5})]
    value = Objective(terms)(pooled, pooled @ head, labels)
    measures = {name: float(t) for name, t in pooled_gradients(value, terms, pooled).items()}
    singly = [
        torch.autograd.grad(
            w * Objective([Term(t.loss, 1.0, t.parameters)])(pooled, pooled @ head, labels).total, pooled
        )[0]
        for t, w in zip(terms, weights, strict=True)
    ]
    value.total.backward()
    assert pooled.grad is not None
    return measures, pooled.grad, singly


def test_norms_and_cosine_equal_gradients_taken_one_by_one() -> None:
    measures, total, (ce, scl) = evaluated((0.3, 0.7))
    assert measures["pooled_grad.cross_entropy"] == pytest.approx(float(ce.norm()), rel=1e-5)
    assert measures["pooled_grad.supcon"] == pytest.approx(float(scl.norm()), rel=1e-5)
    cosine = float((ce * scl).sum() / ce.norm() / scl.norm())
    assert measures["pooled_cosine"] == pytest.approx(cosine, rel=1e-4)
    torch.testing.assert_close(total, ce + scl)


def test_a_part_of_weight_zero_asks_for_nothing() -> None:
    measures, _, _ = evaluated((1.0, 0.0))
    assert set(measures) == {"pooled_grad.cross_entropy"}
