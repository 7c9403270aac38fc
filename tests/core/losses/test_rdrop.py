"""R-Drop, against a slow double loop, the paper's sum and its known properties."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.losses import RDropLoss, cross_entropy_loss, rdrop_loss
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS = torch.tensor([0, 2, 1, 2])


def log_softmax(row: list[float]) -> list[float]:
    top = max(row)
    log_sum = top + math.log(math.fsum(math.exp(x - top) for x in row))
    return [x - log_sum for x in row]


def kl(p: list[float], q: list[float]) -> float:
    return math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True))


def slow_parts(logits1: Tensor, logits2: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return Σ of the two cross-entropies and Σ of the two divergences (the paper's eq. 4), means over the batch."""
    ce = both = 0.0
    for one, two, label in zip(logits1.tolist(), logits2.tolist(), labels.tolist(), strict=True):
        p, q = log_softmax(one), log_softmax(two)
        ce -= p[label] + q[label]
        both += kl(p, q) + kl(q, p)
    return ce / len(labels), both / len(labels)


@each("dtype", [torch.float32, torch.float64])
@each("scale", [1e-3, 1.0, 100.0])
@each("alpha", [0.0, 0.5, 4.0])
def test_it_equals_the_slow_double_loop(alpha: float, scale: float, dtype: torch.dtype) -> None:
    one, two = (random_rows(4, 3, seed=seed, dtype=dtype) * scale for seed in (0, 1))
    ce, both = slow_parts(one, two, LABELS)
    found = rdrop_loss(one, two, LABELS, alpha=alpha)
    assert isinstance(found, RDropLoss)
    assert all(part.dtype == dtype for part in found)
    assert found.ce.item() == pytest.approx(ce / 2, rel=1e-5)
    assert found.kl.item() == pytest.approx(both / 2, rel=1e-5 if scale >= 1 else 1e-3)
    assert found.total.item() == pytest.approx(ce / 2 + alpha * both / 2, rel=1e-5)


def test_the_gradient_passes_gradcheck_for_both_passes() -> None:
    logits = [random_rows(4, 3, seed=seed).requires_grad_() for seed in (0, 1)]
    assert torch.autograd.gradcheck(lambda one, two: tuple(rdrop_loss(one, two, LABELS, alpha=2.0)), logits)


def test_equal_passes_are_cross_entropy() -> None:
    logits = random_rows(4, 3)
    found = rdrop_loss(logits, logits, LABELS, alpha=5.0)
    assert found.kl.item() == 0
    assert found.total.item() == pytest.approx(cross_entropy_loss(logits, LABELS).item())


def test_one_example_and_certain_passes_stay_finite() -> None:
    one = torch.tensor([[1e4, 0.0, -1e4]]).requires_grad_()
    found = rdrop_loss(one, torch.tensor([[0.0, 1e4, 0.0]]), torch.tensor([2]))
    found.total.backward()
    assert found.total.isfinite()
    assert one.grad.isfinite().all()
