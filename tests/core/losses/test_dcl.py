"""The decoupled contrastive loss, against a slow double loop, published code and NT-Xent."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.losses import dcl_loss, supcon_loss
from tests.cases import each
from tests.core.losses.made import random_rows


def slow_loss(z1: Tensor, z2: Tensor, tau: float) -> float:
    rows = [(i, row.double() / row.double().norm()) for z in (z1, z2) for i, row in enumerate(z)]
    total = 0.0
    for place, (i, z) in enumerate(rows):
        push = math.fsum(math.exp((z @ y).item() / tau) for j, y in rows if j != i)
        (pull,) = [(z @ y).item() / tau for other, (j, y) in enumerate(rows) if j == i and other != place]
        total += math.log(push) - pull
    return total / len(rows)


@each("temperature", [0.05, 0.3, 10.0])
def test_it_equals_the_slow_double_loop(temperature: float) -> None:
    for dtype in (torch.float32, torch.float64):
        z1, z2 = random_rows(2, 5, 4, dtype=dtype)
        loss = dcl_loss(z1, z2, temperature=temperature)
        assert loss.dtype == dtype
        assert loss.item() == pytest.approx(slow_loss(z1, z2, temperature), rel=1e-5)


def test_published_code_gives_the_same_number() -> None:
    """Compare with half the sum of both directions, which that code adds."""
    assert dcl_loss(*random_rows(2, 8, 6, seed=3), temperature=0.2).item() == pytest.approx(2.773126656776767, rel=1e-6)


def test_nt_xent_has_the_positive_in_its_denominator_too() -> None:
    """Check e^NT-Xent = 1 + e^DCL, which holds for each anchor, on anchors with equal losses."""
    z1, z2 = random_rows(2, 2, 4)
    z1[1], z2[1] = -z1[0], -z2[0]  # all four anchors have the same loss
    nt_xent = supcon_loss(torch.stack([z1, z2], 1), temperature=0.3).item()
    assert math.exp(nt_xent) == pytest.approx(1 + math.exp(dcl_loss(z1, z2, temperature=0.3).item()))


def test_the_gradient_passes_gradcheck_and_one_text_has_none() -> None:
    z1, z2 = (one.requires_grad_() for one in random_rows(2, 4, 3))
    assert torch.autograd.gradcheck(lambda a, b: dcl_loss(a, b, temperature=0.3), (z1, z2))
    z1, z2 = (one.requires_grad_() for one in random_rows(2, 1, 3))
    loss = dcl_loss(z1, z2)
    loss.backward()
    assert loss.item() == 0.0
    assert not z1.grad.any()
