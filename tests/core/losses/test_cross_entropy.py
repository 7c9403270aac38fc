"""Cross-entropy, its smoothed and margined variants and Mixup, against slow loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from core.losses import cross_entropy_loss, cutmix_loss, large_margin_loss, mixup_loss
from core.losses.cross_entropy import mix
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS = torch.tensor([0, 2, 1, 2])
PARTNERS = torch.tensor([2, 0, 3, 3])


def slow_loss(logits: Tensor, labels: Tensor, smoothing: float = 0.0, margin: float = 0.0) -> float:
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        row[label] -= margin
        top = max(row)
        log_p = [x - top - math.log(math.fsum(math.exp(y - top) for y in row)) for x in row]
        target = [smoothing / len(row) + (1 - smoothing if c == label else 0.0) for c in range(len(row))]
        total -= math.fsum(t * p for t, p in zip(target, log_p, strict=True))
    return total / len(labels)


@each("smoothing", [0.0, 0.1, 0.5])
@each("margin", [0.0, 0.35, 10.0])
def test_it_equals_the_slow_loop(margin: float, smoothing: float) -> None:
    for dtype in [torch.float32, torch.float64]:
        for scale in [1e-3, 1.0, 100.0]:
            logits = random_rows(4, 3, dtype=dtype) * scale
            loss = cross_entropy_loss(logits, LABELS, label_smoothing=smoothing, margin=margin)
            assert loss.dtype == dtype
            assert loss.item() == pytest.approx(slow_loss(logits, LABELS, smoothing, margin), rel=1e-5)


def test_the_gradient_passes_gradcheck() -> None:
    logits = random_rows(4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: cross_entropy_loss(x, LABELS, label_smoothing=0.1, margin=0.5), logits)
    assert torch.autograd.gradcheck(lambda x: mixup_loss(x, LABELS, PARTNERS, 0.3), logits)


def test_the_margin_leaves_the_logits_it_was_given_alone() -> None:
    logits = random_rows(4, 3)
    before = logits.clone()
    cross_entropy_loss(logits, LABELS, margin=1.0)
    assert logits.equal(before)


@each("share", [0.3, torch.tensor(0.3), torch.tensor(0.3, dtype=torch.float64)])
class TestMixup:
    def test_the_loss_equals_the_slow_loop(self, share: float | Tensor) -> None:
        logits = random_rows(4, 3)
        expected = 0.3 * slow_loss(logits, LABELS) + 0.7 * slow_loss(logits, LABELS[PARTNERS])
        assert mixup_loss(logits, LABELS, PARTNERS, share).item() == pytest.approx(expected)

    def test_each_vector_is_mixed_with_its_partner(self, share: float | Tensor) -> None:
        vectors = random_rows(4, 5)
        expected = [
            [0.3 * x + 0.7 * y for x, y in zip(vectors[i].tolist(), vectors[p].tolist(), strict=True)]
            for i, p in enumerate(PARTNERS.tolist())
        ]
        assert mix(vectors, PARTNERS, share).flatten().tolist() == pytest.approx([x for row in expected for x in row])

    def test_the_precision_of_the_vectors_is_kept(self, share: float | Tensor) -> None:
        assert mix(torch.ones(4, 5), PARTNERS, share).dtype == torch.float32
        assert mixup_loss(torch.ones(4, 3), LABELS, PARTNERS, share).dtype == torch.float32


class TestAngleMargin:
    FEATURES, WEIGHT, BIAS = random_rows(8, 5), random_rows(3, 5, seed=1), random_rows(3, seed=2)
    MANY = torch.tensor([0, 2, 1, 2, 0, 1, 1, 0])

    @each("smoothing", [0.0, 0.1])
    @each("margin", [0.0, 0.5])
    @each("m", [1, 2, 3, 4])
    def test_it_equals_the_slow_loop_over_angles(self, m: int, margin: float, smoothing: float) -> None:
        rows, periods = [], set()
        for x, label in zip(self.FEATURES.tolist(), self.MANY.tolist(), strict=True):
            dots = [math.fsum(a * b for a, b in zip(x, w, strict=True)) for w in self.WEIGHT.tolist()]
            scale = math.hypot(*x) * math.hypot(*self.WEIGHT[label].tolist())
            angle = math.acos(dots[label] / scale)
            k = int(angle // (math.pi / m))
            dots[label] = scale * ((-1) ** k * math.cos(m * angle) - 2 * k)
            rows.append([dot + b for dot, b in zip(dots, self.BIAS.tolist(), strict=True)])
            periods.add(k)
        assert m == 1 or len(periods) > 1
        given = (self.FEATURES, self.WEIGHT, self.BIAS, self.MANY)
        found = large_margin_loss(*given, angle_margin=m, margin=margin, label_smoothing=smoothing)
        assert found.item() == pytest.approx(
            slow_loss(torch.tensor(rows, dtype=torch.float64), self.MANY, smoothing, margin), rel=1e-9
        )

    @each("m", [2, 3, 4])
    def test_the_gradient_passes_gradcheck_away_from_the_kinks(self, m: int) -> None:
        x, w, b = (one.clone().requires_grad_() for one in (self.FEATURES, self.WEIGHT, self.BIAS))
        angles = torch.nn.functional.cosine_similarity(self.FEATURES, self.WEIGHT[self.MANY]).acos() / math.pi * m
        assert ((angles - angles.round()).abs() > 1e-3).all()
        assert torch.autograd.gradcheck(lambda *given: large_margin_loss(*given, self.MANY, angle_margin=m), (x, w, b))

    def test_a_text_on_its_class_vector_has_a_finite_gradient(self) -> None:
        x = self.WEIGHT[self.MANY].clone().requires_grad_()
        large_margin_loss(x, self.WEIGHT, self.BIAS, self.MANY, angle_margin=3).backward()
        assert x.grad.isfinite().all()


def test_cutmix_weights_the_two_labels_of_each_text_by_its_own_share() -> None:
    logits, shares = random_rows(4, 3), torch.tensor([1.0, 0.25, 0.6, 0.0], dtype=torch.float64)
    expected = 0.0
    for i, share in enumerate(shares.tolist()):
        one = slice(i, i + 1)
        partner = slow_loss(logits[one], LABELS[PARTNERS][one])
        expected += (share * slow_loss(logits[one], LABELS[one]) + (1 - share) * partner) / 4
    assert cutmix_loss(logits, LABELS, PARTNERS, shares).item() == pytest.approx(expected)


def test_a_full_share_is_no_mixing() -> None:
    logits = random_rows(4, 3)
    assert mixup_loss(logits, LABELS, PARTNERS, 1.0) == cross_entropy_loss(logits, LABELS)
    assert mixup_loss(logits, LABELS, PARTNERS, 0.0) == cross_entropy_loss(logits, LABELS[PARTNERS])
    assert mix(logits, PARTNERS, 1.0).equal(logits)
    assert mix(logits, PARTNERS, 0.0).equal(logits[PARTNERS])


def test_both_partners_of_a_mixture_get_a_gradient() -> None:
    vectors = random_rows(2, 3).requires_grad_()
    mix(vectors, torch.tensor([1, 1]), 0.25)[0].sum().backward()
    assert vectors.grad.tolist() == [[0.25] * 3, [0.75] * 3]
