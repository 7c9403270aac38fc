"""The contrastive loss, against a slow double loop in Python floats and its known properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from core.losses import blockwise, supcon
from core.losses.supcon import contrastive_coefficients, supcon_loss
from tests.cases import each
from tests.core.losses.made import random_rows

LABELS, PAST_LABELS = torch.tensor([0, 1, 0, 2, 1, 0]), torch.tensor([2, 0, 7, 0])
VARIANTS = ["out", "in"]
Related = Callable[[int, int], bool]


@pytest.fixture(params=["one matrix", "strips"], autouse=True)
def _path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test on both paths: one matrix for small batches, and strips of three rows for large ones."""
    if request.param == "strips":
        monkeypatch.setattr(supcon, "BLOCKWISE_FROM", 0)
        monkeypatch.setattr(blockwise, "strip_height", lambda m: 3)


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def slow_losses(
    features: Tensor,
    related: Related,
    present: Tensor,
    tau: float,
    variant: str,
    anchors: str,
    *,
    unit: bool = True,
    queue: Tensor | None = None,
) -> list[float | None]:
    """Return one loss per view, example-major. A view that is no anchor or has no positive has None.

    The vectors of the queue are examples N, N + 1, …: `related(n, N + q)` tests whether q is a positive of n.
    """
    n_examples, v_views = features.shape[:2]
    views = [(n, v, features[n, v].tolist()) for n in range(n_examples) for v in range(v_views)]
    past = [] if queue is None else [(n_examples + q, 0, row) for q, row in enumerate(queue.tolist())]
    if unit:
        views = [(n, v, [x / math.sqrt(dot(z, z)) for x in z]) for n, v, z in views]
        past = [(n, v, [x / math.sqrt(dot(z, z)) for x in z]) for n, v, z in past]
    losses: list[float | None] = []
    for i, (n, v, z) in enumerate(views):
        others = [(m, u, y) for j, (m, u, y) in enumerate(views) if j != i and present[m, u]] + past
        positives = [y for m, _, y in others if related(n, m)]
        if not present[n, v] or (anchors == "one" and v > 0) or not positives:
            losses.append(None)
            continue
        total = sum(math.exp(dot(z, y) / tau) for _, _, y in others)
        p = [math.exp(dot(z, y) / tau) / total for y in positives]
        mean = math.fsum(p) / len(p)
        losses.append(-math.log(mean) if variant == "in" else -math.fsum(map(math.log, p)) / len(p))
    return losses


@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
@each("anchors", ["all", "one"])
@each(("ragged", "normalize"), [(False, True), (True, True), (True, False)])
@each("variant", VARIANTS)
@each("relation", ["labels", "mask", "own views"])
@each("views", [1, 2, 3])
@each("queue", [None, random_rows(4, 4, seed=3) * 3])
def test_it_equals_the_slow_double_loop(
    queue: Tensor | None, views: int, relation: str, variant: str, ragged: bool, normalize: bool, anchors: str
) -> None:
    n, tau, base = len(LABELS), 0.2, 0.07
    features = random_rows(n, views, 4)
    mask, labels = random_rows(n, n, seed=1) > 0, torch.cat([LABELS, PAST_LABELS])
    present = random_rows(n, views, seed=2) > -0.5 if ragged else torch.ones(n, views, dtype=torch.bool)
    related: Related = {
        "labels": lambda i, j: bool(labels[i] == labels[j]),
        "mask": lambda i, j: j < n and bool(mask[i, j]),
        "own views": lambda i, j: i == j,
    }[relation]
    given: dict[str, Any] = {"labels": {"labels": LABELS}, "mask": {"mask": mask}, "own views": {}}[relation]
    given |= {"temperature": tau, "variant": variant, "anchors": anchors, "normalize": normalize}
    given |= {"view_mask": present} if ragged else {}
    given |= {} if queue is None else {"queue": (queue, PAST_LABELS)}

    expected = slow_losses(features, related, present, tau, variant, anchors, unit=normalize, queue=queue)
    counted = [loss for loss in expected if loss is not None]
    all_anchors = int(present.sum() if anchors == "all" else present[:, 0].sum())

    def loss(**more: Any) -> Any:
        return supcon_loss(features, **given, **more)

    assert loss(reduction="none").tolist() == pytest.approx([x or 0.0 for x in expected], abs=1e-10)
    assert loss(reduction="sum").item() == pytest.approx(math.fsum(counted))
    assert loss().item() == pytest.approx(math.fsum(counted) / max(1, len(counted)))
    assert loss(reduction="mean_all").item() == pytest.approx(math.fsum(counted) / all_anchors)
    assert loss(base_temperature=base).item() == pytest.approx(loss().item() * tau / base)


class TestQueue:
    @each("variant", VARIANTS)
    def test_only_the_batch_gets_a_gradient(self, variant: str) -> None:
        queue = random_rows(4, 3, seed=1).requires_grad_()
        features = random_rows(6, 3).requires_grad_()
        supcon_loss(features, LABELS, variant=variant, queue=(queue, PAST_LABELS)).backward()
        assert queue.grad is None
        assert (features.grad[3] != 0).any()  # its only positive is in the queue
        assert torch.autograd.gradcheck(
            lambda f: supcon_loss(f, LABELS, variant=variant, queue=(queue.detach(), PAST_LABELS)), features
        )

    def test_one_example_learns_from_a_positive_in_the_queue(self) -> None:
        queue = (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([5, 6]))
        loss = supcon_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([5]), temperature=1.0, queue=queue)
        assert loss.item() == pytest.approx(math.log(1 + math.e))

    @each("variant", VARIANTS)
    def test_an_empty_queue_is_no_queue(self, variant: str) -> None:
        features = random_rows(6, 2, 4)
        empty = (torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
        with_empty = supcon_loss(features, LABELS, variant=variant, queue=empty)
        assert with_empty == supcon_loss(features, LABELS, variant=variant)


def test_left_out_texts_are_no_candidates_unless_they_are_positives() -> None:
    """Everything is left out, so the positives of an anchor compete with each other alone; class 2 has none."""
    rows = [(z / z.norm()).tolist() for z in random_rows(6, 4)]
    losses = []
    for i, z in enumerate(rows):
        s = [dot(z, rows[j]) / 0.3 for j in range(6) if j != i and LABELS[j] == LABELS[i]]
        losses += [math.log(math.fsum(map(math.exp, s))) - math.fsum(s) / len(s)] if s else []
    found = supcon_loss(random_rows(6, 4), LABELS, temperature=0.3, left_out=torch.ones(6, 6).bool())
    assert found.item() == pytest.approx(math.fsum(losses) / 5)


@each(("variant", "reduction"), [("out", "none"), ("in", "none"), ("out", "mean"), ("in", "mean_all")])
def test_the_gradient_passes_gradcheck(variant: str, reduction: str) -> None:
    features = random_rows(6, 2, 3).requires_grad_()
    present = torch.ones(6, 2, dtype=torch.bool)
    present[3, 1] = False
    assert torch.autograd.gradcheck(
        lambda f: supcon_loss(
            f, LABELS, temperature=0.3, variant=variant, reduction=reduction, view_mask=present, base_temperature=0.1
        ),
        features,
    )


@each("variant", VARIANTS)
@each("scale", [1e-30, 1e-6, 1e-3, 1e3, 1e30])
def test_the_length_of_the_vectors_does_not_matter(variant: str, scale: float) -> None:
    features = random_rows(6, 4, dtype=torch.float32)
    one = supcon_loss(features, LABELS, variant=variant)
    assert supcon_loss(features * scale, LABELS, variant=variant).item() == pytest.approx(one.item(), rel=1e-5)


@each("seed", range(5))
def test_the_inner_variant_is_never_above_the_outer_one(seed: int) -> None:
    features = random_rows(6, 2, 4, seed=seed)
    out, inside = (supcon_loss(features, LABELS, variant=v, reduction="none") for v in ("out", "in"))
    assert (inside <= out + 1e-12).all()
    assert (inside < out - 1e-3).any()


@each("variant", VARIANTS)
@each("junk", [5.0, math.nan, math.inf])
def test_a_masked_view_gets_no_gradient_and_changes_nothing(variant: str, junk: float) -> None:
    features = random_rows(6, 2, 4)
    present = torch.ones(6, 2, dtype=torch.bool)
    present[0, 1] = present[2, 0] = present[3] = False
    clean = supcon_loss(features, LABELS, variant=variant, view_mask=present)
    dirty = torch.where(present.unsqueeze(2), features, junk).requires_grad_()

    loss = supcon_loss(dirty, LABELS, variant=variant, view_mask=present)
    loss.backward()

    assert loss.item() == clean.item()
    assert (dirty.grad[~present] == 0).all()
    assert dirty.grad.isfinite().all()
    assert (dirty.grad[0, 0] != 0).any()


@each("variant", VARIANTS)
@each("reduction", ["mean", "mean_all", "sum", "none"])
@each("examples", [1, 4])
def test_a_batch_without_positives_gives_zero_with_a_graph(variant: str, reduction: str, examples: int) -> None:
    features = random_rows(examples, 3).requires_grad_()
    loss = supcon_loss(features, torch.arange(examples), variant=variant, reduction=reduction)
    assert (loss == 0).all()
    loss.sum().backward()
    assert (features.grad == 0).all()


@each("variant", VARIANTS)
def test_a_batch_of_masked_views_only_gives_zero(variant: str) -> None:
    features = torch.full((4, 2, 3), math.nan).requires_grad_()
    nobody = torch.zeros(4, 2, dtype=torch.bool)
    loss = supcon_loss(features, torch.zeros(4), variant=variant, view_mask=nobody, reduction="mean_all")
    loss.backward()
    assert loss.item() == 0
    assert (features.grad == 0).all()


@each("variant", VARIANTS)
@each("dtype", [torch.float32, torch.float64])
@each("temperature", [0.01, 0.07, 1.0, 10.0])
def test_values_and_gradients_are_finite_at_every_temperature(
    temperature: float, dtype: torch.dtype, variant: str
) -> None:
    features = random_rows(6, 4, dtype=dtype)
    features[1], features[2], features[4] = -features[0], features[0], 0.0
    features.requires_grad_()
    loss = supcon_loss(features, LABELS, temperature=temperature, variant=variant)
    loss.backward()
    assert loss.dtype == dtype
    assert loss.isfinite()
    assert features.grad.isfinite().all()


@each("variant", VARIANTS)
def test_a_positive_opposite_its_anchor_costs_the_full_distance_at_a_low_temperature(variant: str) -> None:
    features = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    losses = supcon_loss(features, torch.tensor([0, 0, 1]), temperature=0.01, variant=variant, reduction="none")
    assert losses.tolist() == pytest.approx([200.0, math.log(2), 0.0], abs=1e-4)


def test_leaving_the_vectors_as_they_are_warns() -> None:
    with pytest.warns(UserWarning, match="without normalisation"):
        supcon_loss(random_rows(6, 4), LABELS, normalize=False)


def slow_coefficients(features: Tensor, labels: Tensor, tau: float, variant: str) -> tuple[list[list[float]], ...]:
    """Return p, X and (p − X)/τ [M][M] in Python floats, with sums that round once."""
    rows = [row.tolist() for row in features.flatten(0, -2)]
    classes = labels.repeat_interleave(len(rows) // len(labels)).tolist()
    z = [[x / math.sqrt(math.fsum(y * y for y in row)) for x in row] for row in rows]
    p, x = ([[0.0] * len(z) for _ in z] for _ in range(2))
    for i, anchor in enumerate(z):
        others = [j for j in range(len(z)) if j != i]
        positives = [j for j in others if classes[j] == classes[i]]
        if not positives:
            continue
        raised = {j: math.exp(math.fsum(map(float.__mul__, anchor, z[j])) / tau) for j in others}
        for j in others:
            p[i][j] = raised[j] / math.fsum(raised.values())
        for j in positives:
            among = math.fsum(raised[k] for k in positives)
            x[i][j] = 1 / len(positives) if variant == "out" else raised[j] / among
    both = [[(a - b) / tau for a, b in zip(*pair, strict=True)] for pair in zip(p, x, strict=True)]
    return p, x, both


@each("variant", VARIANTS)
class TestCoefficients:
    @each("tau", [0.3, 1.0])
    @each(("views", "positives"), [(1, 3), (1, 7), (2, 3), (2, 7)])
    def test_in_double_precision_they_equal_the_slow_double_loop(
        self, variant: str, tau: float, views: int, positives: int
    ) -> None:
        """A third and a seventh are inexact in every precision, so an operation in single precision shows."""
        alike = (positives + 1) // views
        labels = torch.tensor([0] * alike + [1] * alike + [2])
        features = random_rows(len(labels), views, 5)
        found = contrastive_coefficients(features, labels, temperature=tau, variant=variant)
        for matrix, expected in zip(found, slow_coefficients(features, labels, tau, variant), strict=True):
            assert matrix.dtype == torch.float64
            torch.testing.assert_close(matrix, torch.tensor(expected, dtype=torch.float64), atol=1e-14, rtol=0)
        torch.testing.assert_close(found.X.sum(1)[0].item(), 1.0, atol=1e-15, rtol=0)
        sums = found.coefficients.sum(1)
        torch.testing.assert_close(sums, torch.zeros_like(sums), atol=1e-14, rtol=0)

    @pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
    @each("views", [1, 2])
    def test_they_are_the_gradient_of_an_anchors_loss(self, variant: str, views: int) -> None:
        features = random_rows(6, views, 4)
        z = torch.nn.functional.normalize(features.flatten(0, 1), dim=1)
        labels = LABELS.repeat_interleave(views)
        coefficients = contrastive_coefficients(features, LABELS, temperature=0.2, variant=variant).coefficients
        for i in range(len(z)):
            anchor = z[i].clone().requires_grad_()
            rows = torch.stack([anchor if j == i else z[j] for j in range(len(z))])
            losses = supcon_loss(rows, labels, temperature=0.2, variant=variant, normalize=False, reduction="none")
            (gradient,) = torch.autograd.grad(losses[i], anchor)
            torch.testing.assert_close(coefficients[i] @ z, gradient)
