"""Collapse lines and lower bounds, against slow counts and the losses that they belong to."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from core.catalogue.losses import LOSSES
from core.losses.evaluate import Contrasted, ReferenceLines, TermInput, reference_lines
from core.parameters import Value
from core.registry import load
from tests.cases import each
from tests.core.losses.made import random_rows, settings

LABELS = torch.tensor([0, 1, 0, 2, 1, 0])
MASK = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]]).bool()
QUEUE_LABELS = torch.tensor([0, 0, 1, 2, 3, 1, 0])
# Views, view mask, queue.
SHAPES: dict[str, tuple[int, Tensor | None, Tensor | None]] = {
    "one view": (1, None, None),
    "two views": (2, None, None),
    "two views, queue": (2, None, QUEUE_LABELS),
    "masked": (3, MASK, None),
    "queue": (1, None, QUEUE_LABELS),
    "masked, queue": (3, MASK, QUEUE_LABELS),
}


def made(vectors: Tensor, mask: Tensor | None = None, queue: Tensor | None = None, equal: bool = False) -> TermInput:
    """Return a term's inputs. With `equal` the vectors of the queue are equal too."""
    if queue is None:
        return TermInput(layers=(Contrasted(vectors, mask),))
    generator = torch.Generator().manual_seed(9)
    past = torch.ones(len(queue), vectors.shape[-1]) if equal else torch.randn(len(queue), 4, generator=generator)
    return TermInput(layers=(Contrasted(vectors, mask),), queue=(past.to(vectors.dtype), queue))


def lines_of(loss: str, given: TermInput, **parameters: Value) -> ReferenceLines:
    return reference_lines(loss, given, LABELS, settings(loss, **parameters))


def loss_of(loss: str, given: TermInput, **parameters: Value) -> Tensor:
    return load(LOSSES.entry(loss).compute)(given, LABELS, settings(loss, **parameters))


def slow_counts(views: int, mask: Tensor | None, queue: Tensor | None) -> list[tuple[int, int, int]]:
    """Return for each anchor the number of candidates, own other views, and positives of other examples."""
    present = torch.ones(6, views).bool() if mask is None else mask
    places = [(n, v) for n in range(6) for v in range(views) if present[n, v]]
    past = [] if queue is None else queue.tolist()
    counts = []
    for n, v in places:
        others = [(m, u) for m, u in places if (m, u) != (n, v)]
        own = sum(m == n for m, _ in others)
        alike = sum(m != n and LABELS[m] == LABELS[n] for m, _ in others) + past.count(int(LABELS[n]))
        counts.append((len(others) + len(past), own, int(alike)))
    return counts


@each("shape", SHAPES)
@each("reduction", ["mean", "sum"])
def test_lines_of_a_sum_count_every_anchor_with_a_positive(shape: str, reduction: str) -> None:
    views, mask, queue = SHAPES[shape]
    lines = lines_of("supcon", made(random_rows(6, views, 4), mask, queue), reduction=reduction)
    counts = [(candidates, own + alike) for candidates, own, alike in slow_counts(views, mask, queue) if own + alike]
    over = len(counts) if reduction == "mean" else 1
    assert lines.collapse.item() == pytest.approx(sum(math.log(candidates) for candidates, _ in counts) / over)
    assert lines.bound.item() == pytest.approx(sum(math.log(positives) for _, positives in counts) / over)


@each("alpha", [0.1, 0.5, 0.9])
@each("views", [2, 3])
def test_dscl_lines_equal_slow_counts(views: int, alpha: float) -> None:
    lines = lines_of("dscl", made(random_rows(6, views, 4)), alpha=alpha)
    entropies = []
    for _, own, alike in slow_counts(views, None, None):
        target = [alpha / own] * own + [(1 - alpha) / alike] * alike if alike else [1 / own] * own
        entropies.append(-sum(p * math.log(p) for p in target))
    assert lines.collapse.item() == pytest.approx(math.log(6 * views - 1))
    assert lines.bound.item() == pytest.approx(sum(entropies) / len(entropies))


CASES: list[tuple[str, str, dict[str, Any]]] = [
    *(("supcon", shape, {"variant": variant}) for shape in SHAPES for variant in ("out", "in")),
    ("supcon", "masked, queue", {"reduction": "sum"}),
    ("supcon", "one view", {"reduction": "mean_all", "base_temperature": 0.07}),
    ("supcon", "masked, queue", {"reduction": "mean_all"}),
    ("dscl", "two views", {"alpha": 0.1}),
    ("dscl", "two views", {"alpha": 0.8, "base_temperature": 0.5}),
    ("dscl", "two views, queue", {"alpha": 0.1}),
    ("dscl", "two views", {"alpha": 0.1, "variant": "notes-formula"}),
    ("dscl", "two views, queue", {"uniform": True, "variant": "notes-formula"}),
    ("simcse", "two views", {}),
    ("simcse", "two views", {"symmetric": True}),
    ("simcse", "two views", {"candidates": "all"}),
    ("simcse", "two views", {"label_filter": True}),
    ("simcse", "two views", {"candidates": "all", "label_filter": True}),
    ("sincere", "one view", {}),
    ("sincere", "two views", {"epsilon": 0.5}),
    ("dcl", "two views", {}),
    ("dscl", "two views, queue", {"alpha": 0.8, "variant": "notes-code"}),
    ("cosent", "two views", {}),
    ("cosine_mse", "two views", {}),
]


@each(("loss", "shape", "parameters"), CASES)
def test_the_collapse_line_is_the_loss_of_equal_vectors(loss: str, shape: str, parameters: dict[str, Any]) -> None:
    views, mask, queue = SHAPES[shape]
    given = made(torch.ones(6, views, 4, dtype=torch.float64), mask, queue, equal=True)
    collapse = lines_of(loss, given, **parameters).collapse.item()
    assert loss_of(loss, given, **parameters).item() == pytest.approx(collapse, rel=1e-6)


@each(("labels", "active"), [([0, 0, 0, 0, 0, 0], 0.0), ([0, 0, 0, 1, 1, 1], 1.0), ([0, 1, 2, 3, 4, 5], 1.0)])
def test_with_the_label_filter_a_batch_of_one_label_has_no_active_anchor(labels: list[int], active: float) -> None:
    given, filtered = made(random_rows(6, 2, 4)), settings("simcse", label_filter=True)
    found = reference_lines("simcse", given, torch.tensor(labels), filtered)
    assert float(found.active) == active


@each("weight", [0.0, 2.0, -3.0])
def test_the_collapse_line_of_triplets_counts_hard_negatives(weight: float) -> None:
    given = made(torch.ones(6, 3, 4, dtype=torch.float64))
    collapse = lines_of("simcse_supervised", given, hard_negative_weight=weight).collapse.item()
    assert collapse == pytest.approx(math.log(11 + math.exp(weight)))
    assert loss_of("simcse_supervised", given, hard_negative_weight=weight).item() == pytest.approx(collapse)


def test_the_collapse_line_is_also_that_of_equidistant_vectors() -> None:
    given = made(torch.eye(6, dtype=torch.float64).unsqueeze(1))
    assert loss_of("supcon", given).item() == pytest.approx(lines_of("supcon", given).collapse.item())


@each(("loss", "shape", "parameters"), CASES[:-11])
def test_no_vectors_go_below_the_bound(loss: str, shape: str, parameters: dict[str, Any]) -> None:
    """Check random vectors, and vectors optimised for the lowest loss. A low temperature lets them come close."""
    views, mask, queue = SHAPES[shape]
    vectors = random_rows(6, views, 4).requires_grad_()
    given = made(vectors, mask, queue)
    bound = lines_of(loss, given, **parameters, temperature=0.05).bound
    optimiser = torch.optim.Adam([vectors], lr=0.1)
    for _ in range(25):
        optimiser.zero_grad()
        value = loss_of(loss, given, **parameters, temperature=0.05)
        assert value.item() >= bound.item() - 1e-9
        value.backward()
        optimiser.step()


def test_lines_are_averaged_over_layers() -> None:
    mask = torch.ones(6, 3).bool()
    mask[:, 2] = False
    layers = (Contrasted(random_rows(6, 3, 4), mask), Contrasted(random_rows(6, 3, 4)))
    singly = [lines_of("supcon", TermInput(layers=(layer,))) for layer in layers]
    both = lines_of("supcon", TermInput(layers=layers))
    assert both.collapse.item() == pytest.approx((math.log(11) + math.log(17)) / 2)
    for found, first, second in zip(both, *singly, strict=True):
        assert found.item() == pytest.approx((first + second).item() / 2)


def test_a_batch_without_positives_has_finite_lines() -> None:
    lines = reference_lines("supcon", made(random_rows(6, 1, 4)), torch.arange(6), settings("supcon"))
    assert (lines.collapse.item(), lines.bound.item()) == (pytest.approx(math.log(5)), 0.0)


def test_losses_on_logits_have_no_lines() -> None:
    given = TermInput(logits=(torch.zeros(6, 2), torch.zeros(6, 2)))
    for loss in ("cross_entropy", "rdrop"):
        assert reference_lines(loss, given, LABELS, settings(loss)) is None
