"""SimCSE against a slow double loop, and against what must be true of it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from core.losses import simcse_loss, supcon_loss
from tests.cases import each


def random_rows(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


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


@each("symmetric", [False, True])
def test_the_gradient_passes_gradcheck(symmetric: bool) -> None:
    rows = [random_rows(4, 3, seed=seed).requires_grad_() for seed in range(3)]
    assert torch.autograd.gradcheck(lambda *z: simcse_loss(*z, hard_negative_weight=0.5, symmetric=symmetric), rows)


def test_the_order_of_the_pairs_does_not_matter() -> None:
    z = [random_rows(5, 4, seed=seed) for seed in range(3)]
    order = torch.tensor([3, 0, 4, 1, 2])
    one, other = (
        simcse_loss(*z, hard_negative_weight=1.0),
        simcse_loss(*(x[order] for x in z), hard_negative_weight=1.0),
    )
    assert one.item() == pytest.approx(other.item())


def test_a_rotation_of_everything_changes_nothing() -> None:
    z1, z2 = random_rows(5, 4), random_rows(5, 4, seed=1)
    rotation = torch.linalg.qr(random_rows(4, 4, seed=2)).Q
    assert simcse_loss(z1 @ rotation, z2 @ rotation).item() == pytest.approx(simcse_loss(z1, z2).item())


@each("scale", [1e-6, 1e-3, 1e3])
def test_the_length_of_the_vectors_does_not_matter(scale: float) -> None:
    z1, z2 = random_rows(5, 4, dtype=torch.float32), random_rows(5, 4, seed=1, dtype=torch.float32)
    assert simcse_loss(z1 * scale, z2).item() == pytest.approx(simcse_loss(z1, z2).item(), rel=1e-5)


@each(("with_hard", "candidates"), [(False, 6), (True, 12)])
def test_equal_vectors_give_the_logarithm_of_the_candidates(with_hard: bool, candidates: int) -> None:
    ones = torch.ones(6, 4, dtype=torch.float64)
    assert simcse_loss(ones, ones, ones if with_hard else None).item() == pytest.approx(math.log(candidates))


def test_vectors_at_known_angles() -> None:
    z1 = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    z2 = torch.tensor([[3.0, 0.0], [1.0, 1.0]])
    # Row 0 has cosines 1 and cos 45°, row 1 has 0 and cos 45°.
    c = math.cos(math.pi / 4)
    expected = (math.log(1 + math.exp(c - 1)) + math.log(1 + math.exp(-c))) / 2
    assert simcse_loss(z1, z2, temperature=1.0).item() == pytest.approx(expected)


def test_the_weight_goes_to_the_own_hard_negative_alone() -> None:
    # All cosines are 1, so every row is a logarithm of counts: itself, the other, its hard negative, the other's.
    ones = torch.ones(2, 4, dtype=torch.float64)
    loss = simcse_loss(ones, ones, ones, hard_negative_weight=math.log(5))
    assert loss.item() == pytest.approx(math.log(1 + 1 + 5 + 1))
    assert simcse_loss(ones, ones, ones, hard_negative_weight=-1000.0).item() == pytest.approx(math.log(3))


def test_one_direction_never_compares_the_first_embeddings_with_each_other() -> None:
    # SupCon without labels does: its denominator has more, so its loss is larger.
    z1, z2 = random_rows(5, 4), random_rows(5, 4, seed=1)
    both = simcse_loss(z1, z2, temperature=0.3, symmetric=True)
    assert both.item() < supcon_loss(torch.stack([z1, z2], 1), temperature=0.3).item()


def test_autocast_does_not_lower_the_precision() -> None:
    z = [random_rows(16, 64, seed=seed, dtype=torch.float32) for seed in range(3)]
    outside = simcse_loss(*z)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = simcse_loss(*z)
    assert inside.dtype == torch.float32
    assert inside.item() == outside.item()


def test_a_vector_of_zeros_gets_a_finite_gradient() -> None:
    z1 = torch.zeros(3, 4).requires_grad_()
    loss = simcse_loss(z1, random_rows(3, 4, dtype=torch.float32))
    loss.backward()
    assert z1.grad is not None
    assert loss.item() == pytest.approx(math.log(3))
    assert z1.grad.isfinite().all()


@each(
    ("wrong", "name", "value"),
    [
        ({"z1": torch.ones(6)}, "z1", "(6,)"),
        ({"z2": torch.ones(5, 4)}, "z2", "(5, 4)"),
        ({"z3": torch.ones(6, 3)}, "z3", "(6, 3)"),
        ({"temperature": 0.0}, "temperature", "0.0"),
        ({"temperature": math.nan}, "temperature", "nan"),
        ({"hard_negative_weight": math.inf}, "hard_negative_weight", "inf"),
    ],
)
def test_a_wrong_argument_is_named_with_its_value(wrong: dict[str, Any], name: str, value: str) -> None:
    given: dict[str, Any] = {"z1": torch.ones(6, 4), "z2": torch.ones(6, 4), "z3": torch.ones(6, 4)} | wrong
    with pytest.raises(ValueError) as caught:
        simcse_loss(**given)
    assert name in str(caught.value)
    assert value in str(caught.value)
    assert "expected" in str(caught.value)
