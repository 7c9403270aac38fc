"""SINCERE and ε-SupInfoNCE, against a slow double loop, published code and known properties."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.losses import sincere_loss, supcon_loss
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS = torch.tensor([0, 1, 0, 2, 1, 0])


def slow_loss(features: Tensor, labels: Tensor, tau: float, epsilon: float) -> float:
    rows = [
        (int(label), row.double() / row.double().norm())
        for label, text in zip(labels, features, strict=True)
        for row in text
    ]
    found = []
    for i, (label, z) in enumerate(rows):
        s = [(z @ y).item() / tau for _, y in rows]
        push = math.fsum(math.exp(s[j]) for j, (other, _) in enumerate(rows) if other != label)
        pulls = [s[j] for j, (other, _) in enumerate(rows) if other == label and j != i]
        if pulls:
            found.append(math.fsum(math.log(math.exp(x - epsilon) + push) - x for x in pulls) / len(pulls))
    return math.fsum(found) / len(found)


@each("views", [1, 2])
@each("epsilon", [0.0, 0.5])
def test_it_equals_the_slow_double_loop(epsilon: float, views: int) -> None:
    for dtype in (torch.float32, torch.float64):
        for temperature in (0.05, 0.3, 10.0):
            features = random_rows(6, views, 4, dtype=dtype)
            loss = sincere_loss(features, LABELS, temperature=temperature, epsilon=epsilon)
            assert loss.dtype == dtype
            assert loss.item() == pytest.approx(slow_loss(features, LABELS, temperature, epsilon), rel=1e-5)


@each(("epsilon", "expected"), [(0.0, 4.40402558894583), (0.25, 4.3894280317917005)])
def test_published_code_gives_the_same_numbers(epsilon: float, expected: float) -> None:
    """Compare with tufts-ml/SupContrast and EIDOSLAB/unbiased-contrastive-learning, the temperature as base."""
    features, labels = random_rows(8, 2, 6, seed=3), torch.tensor([0, 1, 0, 2, 1, 2, 2, 0])
    loss = sincere_loss(features, labels, temperature=0.2, epsilon=epsilon)
    assert loss.item() == pytest.approx(expected, rel=1e-6)


@each("temperature", [0.05, 0.5])
def test_with_one_positive_per_anchor_it_is_l_out(temperature: float) -> None:
    features, labels = random_rows(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    ours = sincere_loss(features, labels, temperature=temperature)
    assert ours.item() == pytest.approx(supcon_loss(features, labels, temperature=temperature).item(), rel=1e-10)


@each("epsilon", [0.0, 0.7])
def test_the_gradient_passes_gradcheck(epsilon: float) -> None:
    features = random_rows(5, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda f: sincere_loss(f, LABELS[:5], temperature=0.3, epsilon=epsilon), features)


def test_one_class_and_no_positives_have_finite_gradients() -> None:
    for labels in (torch.zeros(6), torch.arange(6)):
        features = random_rows(6, 4).requires_grad_()
        loss = sincere_loss(features, labels, epsilon=0.5)
        loss.backward()
        assert torch.isfinite(features.grad).all()
        assert loss.item() == pytest.approx(-0.5 if labels[1] == 0 else 0.0)
