"""SimCSE, against a slow double loop and its known properties."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.catalogue.losses import SIMCSE
from core.losses import simcse_loss
from core.losses.evaluate import Contrasted, TermInput
from core.losses.simcse import simcse_term
from tests.cases import each
from tests.core.losses.made import random_rows


def cosine(a: Tensor, b: Tensor) -> float:
    a, b = a.double(), b.double()
    return ((a @ b) / (a.norm() * b.norm())).item()


def slow_one_way(rows: Tensor, columns: Tensor, hard: Tensor | None, tau: float, weight: float) -> float:
    total = 0.0
    for i, row in enumerate(rows):
        s = [cosine(row, column) / tau for column in columns]
        own = s[i]
        if hard is not None:
            s += [cosine(row, h) / tau + (weight if j == i else 0.0) for j, h in enumerate(hard)]
        top = max(s)
        total += top + math.log(math.fsum(math.exp(x - top) for x in s)) - own
    return total / len(rows)


@each(("with_hard", "weight"), [(False, 0.0), (True, 0.0), (True, 1.5), (True, -2.0)])
@each("symmetric", [False, True])
def test_it_equals_the_slow_double_loop(symmetric: bool, with_hard: bool, weight: float) -> None:
    for dtype in [torch.float32, torch.float64]:
        for temperature in [0.01, 0.05, 1.0, 10.0]:
            for n in [1, 2, 7]:
                z1, z2, z3 = (random_rows(n, 4, seed=seed, dtype=dtype) for seed in range(3))
                hard = z3 if with_hard else None
                expected = slow_one_way(z1, z2, hard, temperature, weight)
                if symmetric:
                    expected = (expected + slow_one_way(z2, z1, hard, temperature, weight)) / 2
                loss = simcse_loss(
                    z1, z2, hard, temperature=temperature, hard_negative_weight=weight, symmetric=symmetric
                )
                assert loss.dtype == dtype
                assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_unnormalised_rows_are_compared_by_their_dot_product() -> None:
    z1, z2 = random_rows(5, 4, seed=0), random_rows(5, 4, seed=1)
    expected = [(z1[i] @ z2.T).logsumexp(0) - z1[i] @ z2[i] for i in range(5)]
    loss = simcse_loss(z1, z2, temperature=1.0, normalize=False)
    assert loss.item() == pytest.approx(float(torch.stack(expected).mean()))


LABELS = torch.tensor([0, 1, 0, 2, 1, 0])


def slow_filtered(views: list[Tensor], both: bool, tau: float) -> float:
    """Compute SimCSE (z1 → z2) or, with `both`, NT-Xent, in which a text's candidates have other labels than it."""
    losses = []
    for v, anchors in enumerate(views if both else views[:1]):
        for i, anchor in enumerate(anchors):
            s = []
            for u, others in enumerate(views):
                for j, other in enumerate(others):
                    itself, pair = (u, j) == (v, i), j == i
                    if not itself and (both or u == 1) and (pair or LABELS[j] != LABELS[i]):
                        s.append(cosine(anchor, other) / tau)
            own = cosine(anchor, views[1 - v][i]) / tau
            losses.append(math.log(math.fsum(math.exp(x - own) for x in s)))
    return math.fsum(losses) / len(losses)


def filtered(views: list[Tensor], both: bool, tau: float, labels: Tensor = LABELS) -> Tensor:
    candidates = "all" if both else "second"
    settings = {**SIMCSE.defaults, "candidates": candidates, "temperature": tau, "label_filter": True}
    return simcse_term(TermInput(layers=(Contrasted(torch.stack(views, 1)),)), labels, settings)


@each("both", [False, True])
def test_texts_of_the_anchor_s_label_can_be_left_out(both: bool) -> None:
    for dtype in (torch.float32, torch.float64):
        for tau in (0.05, 1 / 30, 2.0):
            views = [random_rows(6, 4, seed=seed, dtype=dtype) for seed in range(2)]
            assert filtered(views, both, tau).item() == pytest.approx(slow_filtered(views, both, tau), rel=1e-5)
    views = [random_rows(6, 4, seed=seed).requires_grad_() for seed in range(2)]
    assert torch.autograd.gradcheck(lambda *z: filtered(list(z), both, 0.3), views)


@each("both", [False, True])
def test_one_label_leaves_nothing_to_push(both: bool) -> None:
    one, two = (random_rows(6, 4, seed=seed).requires_grad_() for seed in range(2))
    loss = filtered([one, two], both, 0.3, labels=torch.zeros(6))
    (gradient,) = torch.autograd.grad(loss, one)
    assert loss.item() == 0.0
    assert not gradient.any()


@each("symmetric", [False, True])
def test_the_gradient_passes_gradcheck(symmetric: bool) -> None:
    rows = [random_rows(4, 3, seed=seed).requires_grad_() for seed in range(3)]
    assert torch.autograd.gradcheck(lambda *z: simcse_loss(*z, hard_negative_weight=0.5, symmetric=symmetric), rows)


def test_a_vector_of_zeros_gets_a_finite_gradient() -> None:
    z1 = torch.zeros(3, 4).requires_grad_()
    loss = simcse_loss(z1, random_rows(3, 4, dtype=torch.float32))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3))
    assert z1.grad.isfinite().all()
