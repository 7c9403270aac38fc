"""Gradient norms of the terms on the encoder's outputs, against gradients taken one by one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from core.losses.objective import Contrasted, Objective, Term, TermInput
from core.losses.registry import LOSSES
from core.training.gradients import output_gradients

LABELS = torch.tensor([0, 1, 0, 1, 1, 0])


def settings(loss: str) -> dict[str, object]:
    return {p.name: p.default for p in LOSSES[loss].parameters}


def evaluated(weights: tuple[float, float]) -> tuple[dict[str, float], list[Tensor], list[list[Tensor]]]:
    """Measures, the total's gradients on two layers' vectors [P, B, H], and each term's; CE reads only the second."""
    torch.manual_seed(0)
    vectors = [torch.randn(1, 6, 5, requires_grad=True) for _ in range(2)]
    head = torch.randn(5, 2)
    inputs = {
        "cross_entropy": TermInput(logits=(vectors[1][0] @ head,)),
        "supcon": TermInput(layers=tuple(Contrasted(layer[0].unsqueeze(1)) for layer in vectors)),
    }
    terms = [Term(name, name, weight, settings(name)) for name, weight in zip(inputs, weights, strict=True)]  # type: ignore[arg-type]
    value = Objective(terms)(inputs.__getitem__, LABELS)
    measures = {name: float(t) for name, t in output_gradients(value, terms, vectors).items()}
    singly = []
    for term in terms:
        total = term.weight * Objective([term._replace(weight=1.0)])(inputs.__getitem__, LABELS).total
        found = torch.autograd.grad(total, vectors, retain_graph=True, allow_unused=True)
        singly.append([torch.zeros(1, 6, 5) if gradient is None else gradient for gradient in found])
    value.total.backward()
    return measures, [vector.grad for vector in vectors if vector.grad is not None], singly


def flat(gradients: list[Tensor]) -> Tensor:
    return torch.cat([gradient.flatten() for gradient in gradients])


def test_norms_and_cosine_equal_gradients_taken_one_by_one() -> None:
    measures, total, (ce, scl) = evaluated((0.3, 0.7))
    assert measures["pooled_grad.cross_entropy"] == pytest.approx(float(flat(ce).norm()), rel=1e-5)
    assert measures["pooled_grad.supcon"] == pytest.approx(float(flat(scl).norm()), rel=1e-5)
    cosine = float((flat(ce) * flat(scl)).sum() / flat(ce).norm() / flat(scl).norm())
    assert measures["pooled_cosine"] == pytest.approx(cosine, rel=1e-4)
    torch.testing.assert_close(flat(total), flat(ce) + flat(scl))
    assert not ce[0].any()


def test_a_part_of_weight_zero_asks_for_nothing() -> None:
    measures, _, _ = evaluated((1.0, 0.0))
    assert set(measures) == {"pooled_grad.cross_entropy"}


def test_a_part_that_no_gradient_reaches_is_left_out() -> None:
    vectors = [torch.randn(1, 6, 5, requires_grad=True)]
    fixed = TermInput(layers=(Contrasted(torch.randn(6, 1, 5)),))
    terms = [Term("supcon", "supcon", 1.0, settings("supcon"))]  # type: ignore[arg-type]
    value = Objective(terms)(lambda _: fixed, LABELS)
    assert output_gradients(value, terms, vectors) == {}
