"""Forces on an anchor and the spread of the push, against slow loops in float64 and autograd."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.losses.forces import forces_on, push_spread, push_spreads

LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 0])


@pytest.fixture
def features() -> Tensor:
    return torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def slow_p(features: Tensor, tau: float, i: int) -> list[float]:
    z = [row / row.norm() for row in features]
    scores = [math.exp(float(z[i] @ z[j]) / tau) if j != i else 0.0 for j in range(len(z))]
    return [score / sum(scores) for score in scores]


@pytest.mark.parametrize("variant", ["out", "in"])
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_forces_are_the_gradient_on_the_anchor(features: Tensor, variant: str, tau: float) -> None:
    z = features / features.norm(dim=1, keepdim=True)
    for anchor in range(7):
        found = forces_on(features, LABELS, anchor, temperature=tau, variant=variant)
        free = z[anchor].clone().requires_grad_()
        others = [j for j in range(7) if j != anchor]
        log_p = (z[others] @ free / tau).log_softmax(0)[LABELS[others] == LABELS[anchor]]
        if not len(log_p):
            continue
        loss = -log_p.mean() if variant == "out" else math.log(len(log_p)) - log_p.logsumexp(0)
        (gradient,) = torch.autograd.grad(loss, free)
        torch.testing.assert_close((found.coefficients.unsqueeze(1) * z).sum(0), gradient, atol=1e-13, rtol=0)
        assert float(found.coefficients.sum()) == pytest.approx(0, abs=1e-14)
        assert getattr(found, f"loss_{variant}") == pytest.approx(loss.item(), abs=1e-13)
        assert found.loss_in <= found.loss_out + 1e-13


def test_positives_attract_and_negatives_repel_under_l_in(features: Tensor) -> None:
    found = forces_on(features, LABELS, 2, temperature=0.5, variant="in")
    for j in range(7):
        if j != 2:
            assert (found.coefficients[j] < 0) == (LABELS[j] == LABELS[2])
    assert found.similarity[2] == pytest.approx(1, abs=1e-6)


def test_an_anchor_without_a_positive_feels_nothing(features: Tensor) -> None:
    found = forces_on(features, LABELS, 5, temperature=0.5)
    assert not found.coefficients.any()
    assert (found.loss_in, found.loss_out) == (0, 0)


def test_an_anchor_outside_the_batch_is_refused(features: Tensor) -> None:
    with pytest.raises(ValueError, match="anchor = 7: expected a place from 0 to 6"):
        forces_on(features, LABELS, 7, temperature=0.5)


@pytest.mark.parametrize("tau", [0.05, 0.3, 2.0])
def test_the_spread_is_that_of_a_slow_loop(features: Tensor, tau: float) -> None:
    entropies, effective, top, inner, outer = [], [], [], [], []
    for i in range(7):
        positives = [j for j in range(7) if j != i and LABELS[j] == LABELS[i]]
        if not positives:
            continue
        p = slow_p(features, tau, i)
        outer.append(-sum(math.log(p[j]) for j in positives) / len(positives))
        inner.append(-math.log(sum(p[j] for j in positives) / len(positives)))
        negatives = [p[j] for j in range(7) if LABELS[j] != LABELS[i]]
        shares = [share / sum(negatives) for share in negatives]
        entropies.append(-sum(share * math.log(share) for share in p if share > 0))
        effective.append(math.exp(-sum(share * math.log(share) for share in shares if share > 0)))
        top.append(max(shares))  # a twentieth of four or five, rounded up, is one
    expected = [sum(values) / len(values) for values in (inner, outer, entropies, effective, top)]
    assert push_spread(features, LABELS, temperature=tau) == pytest.approx(expected, rel=1e-12)


def test_the_spread_of_an_even_push_is_exact_in_double_precision() -> None:
    """All vectors are equidistant: p is 1/6 throughout, and of four negatives each gives a quarter of the push."""
    found = push_spread(torch.eye(7), LABELS, temperature=0.3, anchor=2)
    assert found == pytest.approx((math.log(6), math.log(6), math.log(6), 4, 0.25), rel=1e-14)
    on_average = push_spread(torch.eye(7), LABELS, temperature=0.3)
    assert on_average.top_share == pytest.approx(0.25, rel=1e-14)
    assert on_average.effective_negatives == pytest.approx(4, rel=1e-14)


def test_a_high_temperature_spreads_the_push_evenly_and_a_low_one_gives_it_to_the_hardest(features: Tensor) -> None:
    cold, hot = push_spreads(features, LABELS, [0.01, 1e4])
    assert hot.entropy == pytest.approx(math.log(6), abs=1e-3)
    assert cold.effective_negatives < hot.effective_negatives
    assert hot.effective_negatives == pytest.approx((4 * 3 + 4 * 3) / 6, abs=1e-3)
    assert cold.top_share > 0.9


def test_one_anchor_is_told_alone(features: Tensor) -> None:
    found = push_spread(features, LABELS, temperature=0.3, anchor=2)
    alone = forces_on(features, LABELS, 2, temperature=0.3)
    assert (found.loss_in, found.loss_out) == pytest.approx((alone.loss_in, alone.loss_out))
    p = slow_p(features, 0.3, 2)
    assert found.top_share == pytest.approx(max(p[j] for j in (0, 1, 5, 6)) / sum(p[j] for j in (0, 1, 5, 6)), abs=1e-5)


def test_of_many_negatives_the_strongest_twentieth_counts() -> None:
    features = torch.eye(42)
    labels = torch.tensor([0, 0, *range(1, 41)])
    assert push_spread(features, labels, temperature=1.0, anchor=0).top_share == pytest.approx(2 / 40)


def test_a_batch_without_positives_or_negatives_has_no_spread(features: Tensor) -> None:
    apart = push_spread(features, torch.arange(7), temperature=0.3)
    assert all(math.isnan(value) for value in apart)
    together = push_spread(features, torch.zeros(7, dtype=torch.long), temperature=0.3)
    assert math.isnan(together.top_share)
    assert together.loss_out > 0


def test_the_push_is_told_right_where_a_float32_has_nothing_left_for_it() -> None:
    angles = torch.tensor([0.0, 0.01, 2.2, 2.3])
    features = torch.stack([angles.cos(), angles.sin()], 1)
    found = push_spread(features, torch.tensor([0, 0, 1, 1]), temperature=0.01, anchor=0)
    odds = math.exp((math.cos(2.2) - math.cos(2.3)) / 0.01)
    assert found.top_share == pytest.approx(odds / (1 + odds), rel=1e-3)
