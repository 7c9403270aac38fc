"""Forces on an anchor sum to the gradient of its own loss."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from core.lab.choices import Setting, Stage
from core.lab.dynamics import Pull, first_vectors, play
from core.lab.layouts import start_of
from core.lessons.lesson import lessons
from pages.ui.lab import read_setting
from tests.cases import each

LOSSES = ("out", "in", "dscl", "simcse", "ce")
EVERY = list(itertools.product(("circle", "plane"), LOSSES, (1.0, 0.4)))


def anchor_loss(stage: Stage, setting: Setting, z: torch.Tensor, others: torch.Tensor, anchor: int) -> torch.Tensor:
    """Compute L_i of the first view of one text, whose vector is z. `others` [N, V, d] are constant."""
    labels, tau = start_of(stage).labels, setting.temperature
    n, views, _ = others.shape
    if setting.loss == "simcse":
        logits = torch.stack([z @ others[j, 1] for j in range(n)]) / tau
        return -logits.log_softmax(0)[anchor]
    candidates = [(j, v) for j in range(n) for v in range(views) if (j, v) != (anchor, 0)]
    log_p = torch.stack([z @ others[j, v] / tau for j, v in candidates]).log_softmax(0)
    positive = [k for k, (j, _) in enumerate(candidates) if labels[j] == labels[anchor]]
    if not positive:
        return 0 * z.sum()
    if setting.loss == "in":
        return -(log_p[positive].exp().mean()).log()
    if setting.loss == "out":
        return -log_p[positive].mean()
    own = [k for k in positive if candidates[k][0] == anchor]
    rest = [k for k in positive if candidates[k][0] != anchor]
    return -log_p[own].mean() if not rest else -0.1 * log_p[own].mean() - 0.9 * log_p[rest].mean()


def pulls_at(stage: Stage, setting: Setting, anchor: int) -> tuple[Pull, ...]:
    return tuple(play(stage, setting, first_vectors(stage, setting), 0, anchor).moments[0].pulls)


@each(("layout", "anchor"), [("random", 4), ("imbalanced", 11)])
@each(("space", "loss", "weight"), EVERY)
def test_they_sum_to_the_gradient_of_the_anchors_loss(
    space: str, loss: str, weight: float, layout: str, anchor: int
) -> None:
    """The last text of an imbalanced start is the only one of its class."""
    stage = Stage.model_validate({"space": space, "points": 12, "layout": layout})
    assert (start_of(stage).labels == start_of(stage).labels[anchor]).sum() == (1 if layout == "imbalanced" else 4)
    setting = Setting(loss=loss, weight=weight, temperature=0.3)
    vectors = first_vectors(stage, setting)
    if space == "plane" and loss in ("dscl", "simcse"):
        # These losses use cosines in the plane too, so the coefficients belong to the normalised vectors.
        vectors = vectors._replace(points=vectors.points / np.linalg.norm(vectors.points, axis=-1, keepdims=True))
    pulls = play(stage, setting, vectors, 0, anchor).moments[0].pulls
    points = torch.tensor(vectors.points)
    class_vectors = torch.tensor(vectors.class_vectors)
    z = points[anchor, 0].clone().requires_grad_()
    ce = torch.nn.functional.cross_entropy(class_vectors @ z, torch.tensor(start_of(stage).labels[anchor]))
    share = weight if setting.lab_loss.entry.contrastive else 0.0
    total = (1 - share) * ce + (share * anchor_loss(stage, setting, z, points, anchor) if share else 0.0)
    (gradient,) = torch.autograd.grad(total, z)
    summed = sum(
        pull.coefficient * (class_vectors[pull.number] if pull.kind == "class" else points[pull.number, pull.view])
        for pull in pulls
    )
    torch.testing.assert_close(summed, gradient)


@each(("space", "loss", "weight"), EVERY)
def test_only_what_is_related_attracts(space: str, loss: str, weight: float) -> None:
    stage = Stage.model_validate({"space": space, "points": 12})
    pulls = pulls_at(stage, Setting(loss=loss, weight=weight, temperature=0.3), 4)
    assert {pull.kind for pull in pulls} == (
        {"class"} if loss == "ce" else {"text"} | ({"class"} if weight < 1 else set())
    )
    assert all(pull.related for pull in pulls if pull.coefficient < -1e-12)
    assert any(pull.coefficient < 0 for pull in pulls)


def test_on_the_simplex_no_text_acts_on_another() -> None:
    stage = Stage(space="simplex", points=12)
    assert pulls_at(stage, Setting(loss="rdrop"), 4) == ()


def test_the_lesson_on_positives_says_of_its_points_what_acts_on_them() -> None:
    """Few points pull a point of the small class and many push it. It rests once the classes are apart."""
    (address,) = [
        part.shown.address for part in lessons()["positives"].parts if part.shown.address.get("start") == "imbalanced"
    ]
    stage = Stage.model_validate({"layout": address["start"], "classes": address["classes"]})
    setting = read_setting(address["a"])

    def acting(anchor: int, steps: int) -> tuple[int, int]:
        moment = play(stage, setting, first_vectors(stage, setting), steps, anchor).moments[-1]
        forces = [pull.coefficient for pull in moment.pulls]
        return sum(force < -0.005 for force in forces), sum(force > 0.005 for force in forces)

    pulling, pushing = acting(29, 0)
    assert 0 < pulling < pushing
    pulling, pushing = acting(0, 0)
    assert pulling > pushing > 0
    assert acting(29, 60) == (0, 0)
