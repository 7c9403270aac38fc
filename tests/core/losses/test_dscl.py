"""The decoupled loss, against a slow double loop and its known properties."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from core.losses import dscl_loss, supcon_loss
from tests.cases import each

LABELS = torch.tensor([0, 1, 0, 2, 1, 0])
ALPHAS = [0.1, 0.9, "uniform"]


def random_features(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def slow_loss(features: Tensor, labels: Tensor, alpha: float | str, tau: float) -> float:
    rows = [(n, row.double() / row.double().norm()) for n, example in enumerate(features) for row in example]
    total = 0.0
    for i, (n, z) in enumerate(rows):
        s = {j: (z @ y).item() / tau for j, (_, y) in enumerate(rows) if j != i}
        top = max(s.values())
        log_sum = top + math.log(math.fsum(math.exp(x - top) for x in s.values()))
        own = [s[j] - log_sum for j in s if rows[j][0] == n]
        others = [s[j] - log_sum for j in s if rows[j][0] != n and labels[rows[j][0]] == labels[n]]
        share = len(own) / (len(others) + len(own)) if isinstance(alpha, str) else alpha
        if not others:
            share = 1.0
        total -= share * math.fsum(own) / len(own) + (1 - share) * math.fsum(others) / max(1, len(others))
    return total / len(rows)


@each("alpha", ALPHAS)
@each("views", [2, 3])
def test_it_equals_the_slow_double_loop(views: int, alpha: Any) -> None:
    for dtype in [torch.float32, torch.float64]:
        for temperature in [0.01, 0.07, 1.0, 10.0]:
            features = random_features(6, views, 4, dtype=dtype)
            loss = dscl_loss(features, LABELS, alpha=alpha, temperature=temperature)
            assert loss.dtype == dtype
            assert loss.item() == pytest.approx(slow_loss(features, LABELS, alpha, temperature), rel=1e-5)


@each("alpha", ALPHAS)
@each("temperature", [0.01, 0.3])
def test_the_gradient_passes_gradcheck(temperature: float, alpha: Any) -> None:
    features = random_features(5, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda f: dscl_loss(f, LABELS[:5], alpha=alpha, temperature=temperature), features, atol=1e-4
    )


@each("views", [2, 3])
@each("temperature", [0.01, 0.07, 1.0, 10.0])
def test_uniform_weights_are_the_outer_supervised_contrastive_loss(temperature: float, views: int) -> None:
    features = random_features(6, views, 4).requires_grad_()
    ours = dscl_loss(features, LABELS, alpha="uniform", temperature=temperature)
    theirs = supcon_loss(features, LABELS, temperature=temperature)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-10)
    gradients = [torch.autograd.grad(loss, features)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*gradients)


@each("alpha", ALPHAS)
class TestIdentities:
    def test_one_example_with_two_views_has_nothing_to_learn(self, alpha: Any) -> None:
        features = random_features(1, 2, 4).requires_grad_()
        loss = dscl_loss(features, torch.tensor([3]), alpha=alpha)
        loss.backward()
        assert features.grad is not None
        assert loss.item() == pytest.approx(0.0, abs=1e-12)
        assert features.grad.abs().max() < 1e-12
