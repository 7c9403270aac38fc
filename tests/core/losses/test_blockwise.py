"""Block-wise sums against slow double loops. test_supcon.py tests the loss that uses them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from core.losses import blockwise
from core.losses.blockwise import SAFE_EXPONENT, group_similarity, others_logsumexp, strip_height
from core.losses.supcon import supcon_loss
from tests.cases import each

GROUPS = torch.tensor([2, 0, 2, 1, 0, 2, 0, 3, 2])
DTYPES = [torch.float32, torch.float64]


def random_rows(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64, length: float = 1.0) -> Tensor:
    rows = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (rows / rows.norm(dim=-1, keepdim=True) * length).to(dtype)


def slow_logsumexp(z: Tensor, tau: float, groups: Tensor | None = None) -> list[float]:
    rows = z.double().tolist()
    found = []
    for i, one in enumerate(rows):
        others = [j for j in range(len(rows)) if j != i and (groups is None or groups[i] == groups[j])]
        s = [math.fsum(x * y for x, y in zip(one, rows[j], strict=True)) / tau for j in others]
        top = max(s, default=-math.inf)
        found.append(top + math.log(math.fsum(math.exp(x - top) for x in s)) if s else -math.inf)
    return found


@pytest.fixture(params=[1, 2, 4, 100], ids="strips of {}".format)
def _height(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "strip_height", lambda m: request.param)


@pytest.mark.usefixtures("_height")
@each("groups", [None, GROUPS, torch.arange(9), torch.zeros(9, dtype=torch.long)])
class TestLogSumExp:
    def test_it_equals_the_slow_double_loop(self, groups: Tensor | None) -> None:
        for dtype in DTYPES:
            for temperature in [0.01, 0.07, 1.0, 10.0]:
                for length in [1e-3, 1.0, 30.0]:
                    z = random_rows(9, 4, dtype=dtype, length=length)
                    z[1], z[4] = -z[0], z[0]
                    found = others_logsumexp(z, temperature, groups)
                    assert found.dtype == dtype
                    error = torch.finfo(dtype).eps * 8
                    size = length * length / temperature
                    assert found.tolist() == pytest.approx(
                        slow_logsumexp(z, temperature, groups), rel=error, abs=error * size + error
                    )

    @each("length", [0.5, 3.0])  # below and above SAFE_EXPONENT
    def test_the_gradient_passes_gradcheck(self, groups: Tensor | None, length: float) -> None:
        z = random_rows(9, 3, length=length).requires_grad_()
        assert (length**2 / 0.1 <= SAFE_EXPONENT) == (length < 1)

        def finite_rows(z: Tensor) -> Tensor:
            found = others_logsumexp(z, 0.1, groups)
            return torch.where(found.isfinite(), found, 0.0)

        assert torch.autograd.gradcheck(finite_rows, z)


@pytest.mark.usefixtures("_height")
@each("length", [1.0, 100.0])
@each("groups", [torch.arange(5), torch.tensor([0, 1, 0, 2, 1])])
def test_a_row_without_others_gives_minus_infinity_and_no_gradient(groups: Tensor, length: float) -> None:
    z = random_rows(5, 3, length=length).requires_grad_()
    found = others_logsumexp(z, 1.0, groups)
    found.sum().backward()
    alone = groups.bincount()[groups] == 1
    assert (found[alone] == -math.inf).all()
    assert found[~alone].isfinite().all()
    assert (z.grad[alone] == 0).all()
    assert (z.grad[~alone] != 0).all()


@each("rows", [0, 1])
def test_batches_without_a_pair(rows: int) -> None:
    z = torch.ones(rows, 3).requires_grad_()
    found = others_logsumexp(z, 0.1)
    found.sum().backward()
    assert found.tolist() == [-math.inf] * rows
    assert (z.grad == 0).all()


@each("length", [1.0, 1e3])
def test_no_exponent_overflows_in_single_precision(length: float) -> None:
    z = random_rows(40, 8, dtype=torch.float32, length=length).requires_grad_()
    found = others_logsumexp(z, 0.01)
    found.sum().backward()
    assert found.isfinite().all()
    assert z.grad.isfinite().all()
    assert found.tolist() == pytest.approx(slow_logsumexp(z.detach(), 0.01), rel=1e-5, abs=length * length * 1e-4)


@each("temperature", [0.01, 0.1])
def test_what_is_not_a_number_stays_visible(temperature: float) -> None:
    z = random_rows(6, 3)
    z[2, 1] = math.nan
    assert others_logsumexp(z, temperature).isnan().all()


def test_the_gradient_refuses_to_be_differentiated_again() -> None:
    z = random_rows(6, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="only once"):
        torch.autograd.grad(others_logsumexp(z, 0.1).sum(), z, create_graph=True)


def test_autocast_around_the_backward_pass_changes_nothing() -> None:
    z = random_rows(40, 64, dtype=torch.float32).requires_grad_()
    (outside,) = torch.autograd.grad(others_logsumexp(z, 0.1).sum(), z)
    total = others_logsumexp(z, 0.1).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (inside,) = torch.autograd.grad(total, z)
    assert inside.equal(outside)


def test_the_similarity_to_the_group_equals_the_slow_double_loop() -> None:
    z = random_rows(9, 4)
    sums, counts = group_similarity(z, GROUPS)
    others = [[j for j in range(9) if j != i and GROUPS[j] == GROUPS[i]] for i in range(9)]
    assert counts.tolist() == [len(row) for row in others]
    expected = [math.fsum((z[i] * z[j]).sum().item() for j in row) for i, row in enumerate(others)]
    assert sums.tolist() == pytest.approx(expected, abs=1e-12)


class LargestTensor(TorchDispatchMode):
    """A mode that measures the largest tensor returned by any operation."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else (found,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return found


@each("temperature", [0.01, 0.07])
@each("variant", ["out", "in"])
@each("labelled", [True, False])
def test_a_large_batch_never_holds_the_matrix_of_all_pairs(labelled: bool, variant: Any, temperature: float) -> None:
    m = 1000
    features = random_rows(m // 2, 2, 8, dtype=torch.float32).requires_grad_()
    labels = torch.arange(m // 2) % 4 if labelled else None
    with LargestTensor() as largest:
        supcon_loss(features, labels, temperature=temperature, variant=variant).backward()
    assert m <= largest.elements <= strip_height(m) * m < m * m / 3


def test_a_batch_of_ordinary_size_keeps_its_second_derivative() -> None:
    features = random_rows(64, 8).requires_grad_()
    (gradient,) = torch.autograd.grad(supcon_loss(features, torch.arange(64) % 3), features, create_graph=True)
    gradient.square().sum().backward()
    assert features.grad.abs().max() > 0
