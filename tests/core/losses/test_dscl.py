"""The decoupled loss, against a slow double loop and its known properties."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from core.losses import dscl_loss, supcon_loss
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS = torch.tensor([0, 1, 0, 2, 1, 0])
PAST_LABELS = torch.tensor([2, 0, 7, 0, 2])
ALPHAS = [0.1, 0.9, "uniform"]
VARIANTS = ["paper", "notes-formula", "notes-code"]


def unit(rows: Tensor) -> Tensor:
    return rows.double() / rows.double().norm(dim=-1, keepdim=True)


def slow_loss(
    features: Tensor,
    labels: Tensor,
    alpha: float | str,
    tau: float,
    queue: tuple[Tensor, Tensor] | None = None,
    variant: str = "paper",
    *,
    normalize: bool = True,
) -> float:
    scaled = unit if normalize else Tensor.double
    rows = [(n, int(labels[n]), row) for n, example in enumerate(scaled(features)) for row in example]
    past = [] if queue is None else [(-1, int(y), row) for row, y in zip(scaled(queue[0]), queue[1], strict=True)]
    total = 0.0
    for i, (n, label, z) in enumerate(rows):
        s = {j: (z @ y).item() / tau for j, (_, _, y) in enumerate(rows + past)}
        texts, classes = [n for n, _, _ in rows + past], [y for _, y, _ in rows + past]
        top = max(s.values())  # of all, the anchor included
        del s[i]
        log_sum = top + math.log(math.fsum(math.exp(x - top) for x in s.values()))
        own = [s[j] for j in s if texts[j] == n]
        others = [s[j] for j in s if texts[j] != n and classes[j] == label]
        if variant == "paper":
            share = len(own) / (len(others) + len(own)) if isinstance(alpha, str) else alpha
            if not others:
                share = 1.0
            pull = share * math.fsum(own) / len(own) + (1 - share) * math.fsum(others) / max(1, len(others))
            total += log_sum - pull
            continue
        positives, p = own + others, len(own + others)
        share = len(own) / (p + len(own)) if isinstance(alpha, str) else alpha
        if variant == "notes-formula":
            weight = (1 - share) * (p + 1) / p
            total -= math.fsum(math.log(weight) + x - log_sum for x in positives) / p
        else:
            weight = (1 - share) * p / (p - 1 if p > 1 else 1)
            total -= math.fsum(weight * (x - top) - (log_sum - top) for x in positives) / p
    return total / len(rows)


@each("queued", [False, True])
@each("variant", VARIANTS)
@each("alpha", ALPHAS)
@each("views", [2, 3])
def test_it_equals_the_slow_double_loop(views: int, alpha: Any, variant: str, queued: bool) -> None:
    for dtype in [torch.float32, torch.float64]:
        for temperature in [0.01, 0.07, 1.0, 10.0]:
            features = random_rows(6, views, 4, dtype=dtype)
            queue = (random_rows(5, 4, seed=1, dtype=dtype) * 3, PAST_LABELS) if queued else None
            loss = dscl_loss(features, LABELS, alpha=alpha, temperature=temperature, variant=variant, queue=queue)
            assert loss.dtype == dtype
            expected = slow_loss(features, LABELS, alpha, temperature, queue, variant)
            assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@each("variant", VARIANTS)
@each("views", [2, 3])
@pytest.mark.filterwarnings("ignore:dscl_loss without normalisation")
def test_unnormalised_vectors_equal_the_slow_double_loop(views: int, variant: str) -> None:
    features = random_rows(6, views, 4)
    loss = dscl_loss(features, LABELS, alpha=0.1, temperature=0.5, variant=variant, normalize=False)
    expected = slow_loss(features, LABELS, 0.1, 0.5, variant=variant, normalize=False)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@each("variant", VARIANTS)
@each(("alpha", "temperature"), [(0.1, 0.01), (0.1, 0.3), ("uniform", 0.3)])
def test_the_gradient_passes_gradcheck(temperature: float, alpha: Any, variant: str) -> None:
    features = random_rows(5, 2, 3).requires_grad_()
    for queue in (None, (random_rows(5, 3, seed=1), PAST_LABELS)):
        given: dict[str, Any] = {"alpha": alpha, "temperature": temperature, "variant": variant, "queue": queue}
        assert torch.autograd.gradcheck(lambda f, given=given: dscl_loss(f, LABELS[:5], **given), features, atol=1e-4)


@each("variant", VARIANTS)
def test_the_queue_gets_no_gradient_and_an_empty_one_is_none(variant: str) -> None:
    features, past = random_rows(6, 2, 4), random_rows(5, 4, seed=1).requires_grad_()
    features.requires_grad_()
    dscl_loss(features, LABELS, variant=variant, queue=(past, PAST_LABELS)).backward()
    assert past.grad is None
    assert features.grad is not None
    empty = (torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
    assert dscl_loss(features, LABELS, variant=variant, queue=empty) == dscl_loss(features, LABELS, variant=variant)


@each("views", [2, 3])
def test_in_the_notes_formula_alpha_shifts_the_loss_and_leaves_the_gradient_of_l_out(views: int) -> None:
    features = random_rows(6, views, 4).requires_grad_()
    out = supcon_loss(features, LABELS, temperature=0.3)
    (expected,) = torch.autograd.grad(out, features)
    for alpha in (0.05, 0.5, 0.95):
        loss = dscl_loss(features, LABELS, alpha=alpha, temperature=0.3, variant="notes-formula")
        torch.testing.assert_close(torch.autograd.grad(loss, features)[0], expected, rtol=1e-10, atol=1e-12)
        positives = [int((label == LABELS).sum()) * views - 1 for label in LABELS]
        shift = sum(math.log((1 - alpha) * (p + 1) / p) for p in positives) / len(positives)
        assert loss.item() == pytest.approx(out.item() - shift)


def test_in_the_notes_code_alpha_scales_the_pull_and_the_loss_can_be_negative() -> None:
    """The vectors are orthogonal, so every logit is the same distance 1/τ below the largest, the anchor's own."""
    features = torch.eye(12, dtype=torch.float64).reshape(6, 2, 12)
    loss = dscl_loss(features, LABELS, alpha=0.9, temperature=0.1, variant="notes-code")
    positives = [int((label == LABELS).sum()) * 2 - 1 for label in LABELS]
    weights = [0.1 * p / max(p - 1, 1) for p in positives]
    assert loss.item() == pytest.approx(sum(math.log(11) - 10 * (1 - w) for w in weights) / 6)
    assert loss.item() < 0


@each("views", [2, 3])
@each("temperature", [0.01, 0.07, 1.0, 10.0])
def test_uniform_weights_are_the_outer_supervised_contrastive_loss(temperature: float, views: int) -> None:
    features = random_rows(6, views, 4).requires_grad_()
    ours = dscl_loss(features, LABELS, alpha="uniform", temperature=temperature)
    theirs = supcon_loss(features, LABELS, temperature=temperature)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-10)
    gradients = [torch.autograd.grad(loss, features)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*gradients)


@each("alpha", ALPHAS)
def test_one_example_with_two_views_has_nothing_to_learn(alpha: Any) -> None:
    features = random_rows(1, 2, 4).requires_grad_()
    loss = dscl_loss(features, torch.tensor([3]), alpha=alpha)
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert features.grad.abs().max() < 1e-12
