"""CoSENT and cosine MSE, against slow loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.losses import cosent_loss, cosine_mse_loss
from tests.cases import each
from tests.core.losses.made import random_rows

SCORES = torch.tensor([0.2, 1.0, 0.0, 0.2, 0.75])
PAIRS = random_rows(2, 5, 4)


def slow_cosines(first: Tensor, second: Tensor) -> list[float]:
    found = []
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
        found.append(dot / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b)))
    return found


@each("temperature", [0.05, 1.0])
def test_cosent_equals_the_slow_double_loop(temperature: float) -> None:
    """The loop is sentence-transformers' CoSENTLoss with scale 1 / τ."""
    cosines = slow_cosines(*PAIRS)
    exponents = [
        math.exp((cosines[j] - cosines[i]) / temperature) for i in range(5) for j in range(5) if SCORES[i] > SCORES[j]
    ]
    expected = math.log(1 + math.fsum(exponents))
    for dtype in (torch.float32, torch.float64):
        loss = cosent_loss(*random_rows(2, 5, 4, dtype=dtype), SCORES, temperature=temperature)
        assert loss.dtype == dtype
        assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_cosine_mse_equals_the_slow_loop() -> None:
    errors = [(cosine - score) ** 2 for cosine, score in zip(slow_cosines(*PAIRS), SCORES.tolist(), strict=True)]
    assert cosine_mse_loss(*PAIRS, SCORES).item() == pytest.approx(math.fsum(errors) / 5, rel=1e-7)


def test_values_and_gradients_are_those_of_sentence_transformers() -> None:
    """Figures of CoSENTLoss and CosineSimilarityLoss in sentence-transformers 6.2.0, on the same vectors."""
    wave = torch.arange(30, dtype=torch.float64).reshape(5, 6) * 0.7
    second = torch.sin(wave + 1.3) + torch.sin(wave).flip(0) / 2
    scores = torch.tensor([0.0, 0.2, 0.2, 0.5, 1.0], dtype=torch.float64)
    for temperature, value, norm in (
        (0.05, 8.572027270667824, 13.909269774237206),  # scale 20, its default
        (0.2, 3.047486683265765, 2.4677248170325234),
        (1.0, 2.3612364461706874, 0.3674890491642495),
    ):
        first = torch.sin(wave).requires_grad_()
        loss = cosent_loss(first, second, scores, temperature=temperature)
        assert loss.item() == pytest.approx(value, rel=1e-12)
        assert torch.autograd.grad(loss, first)[0].norm().item() == pytest.approx(norm, rel=1e-10)
    first = torch.sin(wave).requires_grad_()
    loss = cosine_mse_loss(first, second, scores)
    assert loss.item() == pytest.approx(0.19674273197526432, rel=1e-7)  # its scores are rounded to float32
    assert torch.autograd.grad(loss, first)[0].norm().item() == pytest.approx(0.21538115084121287, rel=1e-7)


def test_the_gradients_pass_gradcheck() -> None:
    given = [one.clone().requires_grad_() for one in PAIRS]
    assert torch.autograd.gradcheck(lambda a, b: cosent_loss(a, b, SCORES, temperature=0.3), given)
    assert torch.autograd.gradcheck(lambda a, b: cosine_mse_loss(a, b, SCORES), given)


def test_cosent_reads_only_the_order_of_the_scores() -> None:
    assert cosent_loss(*PAIRS, SCORES) == cosent_loss(*PAIRS, 3 * SCORES**3 - 7)


def test_equal_scores_give_cosent_nothing_to_order() -> None:
    given = [one.clone().requires_grad_() for one in PAIRS]
    loss = cosent_loss(*given, torch.ones(5))
    loss.backward()
    assert loss.item() == 0
    assert all(torch.equal(one.grad, torch.zeros(5, 4, dtype=torch.float64)) for one in given)
