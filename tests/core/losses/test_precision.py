"""Losses compute in single precision at least, and in double precision throughout for double inputs.

Neither autocast nor torch's default precision may affect a loss.

Integer division and tensors made of Python numbers take the default precision. With float64 as the default
nothing can be less precise, so both defaults must give the same digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from core.catalogue.loss_entry import PushSpread
from core.catalogue.losses import LOSSES
from core.losses import blockwise, supcon
from core.losses.cross_entropy import cross_entropy_loss, mixup_loss
from core.losses.dcl import dcl_loss
from core.losses.dscl import dscl_loss
from core.losses.evaluate import Contrasted, TermInput, reference_lines
from core.losses.forces import batch_forces, push_spread
from core.losses.rdrop import rdrop_loss
from core.losses.scl import scl_objective
from core.losses.simcse import simcse_loss
from core.losses.sincere import sincere_loss
from core.losses.supcon import contrastive_coefficients, supcon_loss
from tests.cases import each

LABELS = torch.tensor([0, 0, 1, 1, 1, 1, 0, 2, 0, 1, 1, 1])  # classes of 4, 7 and 1 give targets of thirds and sixths
PARTNERS = torch.arange(11, -1, -1)


def lines(views: Tensor, loss: str) -> tuple[Tensor, ...]:
    settings = {parameter.name: parameter.default for parameter in LOSSES[loss].parameters}
    found = reference_lines(loss, TermInput(layers=(Contrasted(views),)), LABELS, settings)
    return tuple(line for line in found if line is not None)


def numbers(spread: PushSpread) -> tuple[float, ...]:
    return (*spread.losses, *spread[1:])


# Views [12, 2, 5] → one or more tensors or numbers.
CASES: dict[str, Callable[[Tensor], Any]] = {
    **{
        f"supcon {variant} {reduction}": lambda views, v=variant, r=reduction: supcon_loss(
            views, LABELS, variant=v, reduction=r, temperature=0.3, base_temperature=0.07
        )
        for variant in ("out", "in")
        for reduction in ("mean", "mean_all", "none")
    },
    "coefficients out": lambda views: contrastive_coefficients(views, LABELS, temperature=0.3, variant="out"),
    "coefficients in": lambda views: contrastive_coefficients(views, LABELS, temperature=0.3, variant="in"),
    "forces": lambda views: batch_forces(views[:, 0].detach(), LABELS, temperature=0.3)[:5],
    "push spread": lambda views: numbers(push_spread(views[:, 0].detach(), LABELS, temperature=0.3)),
    "sincere": lambda views: sincere_loss(views, LABELS, epsilon=0.5),
    "dcl": lambda views: dcl_loss(views[:, 0], views[:, 1]),
    "dscl": lambda views: dscl_loss(views, LABELS, alpha=0.1),
    "dscl of the notes' formula": lambda views: dscl_loss(views, LABELS, variant="notes-formula"),
    "dscl of the notes' code": lambda views: dscl_loss(views, LABELS, variant="notes-code"),
    "dscl uniform": lambda views: dscl_loss(views, LABELS, alpha="uniform"),
    "scl": lambda views: scl_objective(views[:, 0], LABELS, views, weight=0.3),
    "simcse": lambda views: simcse_loss(views[:, 0], views[:, 1], symmetric=True),
    "simcse, triplets": lambda views: simcse_loss(*views.unbind(1), views[:, 0].flip(0), hard_negative_weight=0.7),
    "cross-entropy": lambda views: cross_entropy_loss(views[:, 0], LABELS, label_smoothing=0.1, margin=0.3),
    "mixup": lambda views: mixup_loss(views[:, 0], LABELS, PARTNERS, torch.tensor(1 / 3, dtype=torch.float64)),
    "rdrop": lambda views: rdrop_loss(views[:, 0], views[:, 1], LABELS, alpha=0.7),
    **{f"lines of {loss}": lambda views, of=loss: lines(views, of) for loss in ("supcon", "dscl", "simcse")},
}


@pytest.fixture(params=["one matrix", "strips"])
def _path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "strips":
        monkeypatch.setattr(supcon, "BLOCKWISE_FROM", 0)
        monkeypatch.setattr(blockwise, "strip_height", lambda m: 5)


def in_double(function: Callable[[], Any]) -> Any:
    """Call with float64 as torch's default precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return function()
    finally:
        torch.set_default_dtype(before)


VIEWS = torch.randn(12, 2, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def values(name: str, features: Tensor) -> list[Tensor]:
    result = CASES[name](features)
    found = [result] if isinstance(result, Tensor) else list(result)
    return [value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64) for value in found]


@pytest.mark.usefixtures("_path")
@each("name", CASES)
def test_the_default_precision_changes_no_digit(name: str) -> None:
    def found() -> list[Tensor]:
        features = VIEWS.clone().requires_grad_()
        tensors = values(name, features)
        if tensors[0].requires_grad and tensors[0].ndim == 0:
            tensors += torch.autograd.grad(tensors[0], features)
        return tensors

    assert torch.get_default_dtype() == torch.float32
    for single, double in zip(found(), in_double(found), strict=True):
        assert single.dtype == torch.float64
        assert torch.equal(single, double)


@pytest.mark.usefixtures("_path")
@each("name", CASES)
def test_neither_autocast_nor_half_precision_vectors_lower_the_precision(name: str) -> None:
    for features in (VIEWS.float(), VIEWS.bfloat16()):
        expected = values(name, features.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = values(name, features)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            assert one.dtype in (torch.float32, torch.float64)
            assert torch.equal(one, other)
