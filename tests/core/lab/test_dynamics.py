"""Points move by the gradient of the public losses, which have slow loops in `tests/core/losses`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core.lab.choices import SPACES, Setting, Stage, loss_names
from core.lab.dynamics import Trajectory, first_vectors, logits_at, play, to_drawing
from core.lab.layouts import simplex_corners, start_of
from core.losses import dcl_loss, dscl_loss, rdrop_loss, simcse_loss, sincere_loss, supcon_loss
from tests.cases import each

# The sphere differs from the circle in its width alone, so one loss represents it.
EVERY = [(space, loss) for space in SPACES for loss in loss_names(space) if space != "sphere" or loss == "out"]


def played(space: str, loss: str, steps: int = 0, layout: str = "random", points: int = 9, **more: Any) -> Trajectory:
    stage = stage_of(space, layout, points)
    setting = Setting.model_validate({"loss": loss, **more})
    return play(stage, setting, first_vectors(stage, setting), steps)


def stage_of(space: str, layout: str = "random", points: int = 9) -> Stage:
    return Stage.model_validate({"space": space, "layout": layout, "points": points})


def loss_of(stage: Stage, setting: Setting, points: Tensor, class_vectors: Tensor | None) -> Tensor:
    """Compute (1 − λ)·CE + λ·loss with the public losses. Vectors [N, V, d]."""
    labels, known = torch.from_numpy(start_of(stage).labels), {"temperature": setting.temperature}
    logits = points if class_vectors is None else points @ class_vectors.T
    ce = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.repeat_interleave(points.shape[1]))
    unit: dict[str, Any] = known | {"normalize": stage.space != "plane"}
    match setting.loss:
        case "ce":
            return ce
        case "rdrop":
            return rdrop_loss(points[:, 0], points[:, 1], labels, alpha=1.0).total
        case "simcse":
            loss = simcse_loss(points[:, 0], points[:, 1], **unit)
        case "dcl":
            loss = dcl_loss(points[:, 0], points[:, 1], **known)
        case "sincere":
            loss = sincere_loss(points, labels, **known)
        case "dscl" | "dscl-formula" | "dscl-code":
            variant = {"dscl": "paper"}.get(setting.loss, setting.loss.replace("dscl", "notes"))
            loss = dscl_loss(points, labels, alpha=0.1, variant=variant, **unit)
        case name:
            reduction = "sum" if name == "sum" else "mean"
            loss = supcon_loss(points, labels, variant="in" if name == "in" else "out", reduction=reduction, **unit)
    return setting.weight * loss + (1 - setting.weight) * ce


@each(("weight", "layout"), [(1.0, "random"), (0.6, "imbalanced")])
@each(("space", "loss"), EVERY)
@pytest.mark.filterwarnings("ignore:supcon_loss without normalisation")
def test_loss_and_gradient_are_those_of_the_public_losses(space: str, loss: str, weight: float, layout: str) -> None:
    stage, setting = stage_of(space, layout), Setting(loss=loss, weight=weight, temperature=0.4)
    vectors = first_vectors(stage, setting)
    (moment,) = play(stage, setting, vectors, 0).moments
    points = torch.tensor(vectors.points, requires_grad=True)
    expected = loss_of(stage, setting, points, None if space == "simplex" else torch.tensor(vectors.class_vectors))
    assert moment.loss == pytest.approx(expected.item(), rel=1e-9)
    gradient = torch.autograd.grad(expected, points)[0].numpy()
    if space in ("circle", "sphere"):
        gradient = gradient - (gradient * vectors.points).sum(-1, keepdims=True) * vectors.points
    assert moment.gradient_norm == pytest.approx(float(np.linalg.norm(gradient)), rel=1e-6)
    if space != "simplex":
        np.testing.assert_allclose(moment.arrows, -gradient, atol=1e-9)


@each(("space", "loss"), EVERY)
def test_a_step_goes_along_the_arrows(space: str, loss: str) -> None:
    first, second = played(space, loss, 1, learning_rate=0.2).moments
    if space == "simplex":
        # A small step of the logits moves a prediction along its arrow.
        small = played(space, loss, 1, learning_rate=1e-4).moments
        np.testing.assert_allclose(small[1].places - small[0].places, 1e-4 * first.arrows, atol=1e-8)
        return
    expected = first.places + 0.2 * first.arrows
    if space != "plane":
        expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(second.places, expected, atol=1e-12)


@each(("space", "loss"), [("circle", "out"), ("plane", "out"), ("simplex", "rdrop"), ("simplex", "ce")])
def test_small_steps_lower_the_loss(space: str, loss: str) -> None:
    losses = [moment.loss for moment in played(space, loss, 20, learning_rate=0.05, temperature=0.5).moments]
    assert all(after < before for before, after in itertools.pairwise(losses))


def test_without_normalisation_gradients_explode_and_with_it_they_do_not() -> None:
    """Dot products grow with the vectors, and the gradient with them."""
    settings: dict[str, Any] = {"temperature": 0.05, "learning_rate": 2.0}
    plane, circle = (played(space, "out", 60, points=30, **settings) for space in ("plane", "circle"))
    norms = [moment.gradient_norm for moment in plane.moments]
    assert plane.exploded
    assert len(norms) < 60
    assert norms[-1] > 1e4 * norms[0]
    assert all(np.isfinite(moment.places).all() for moment in plane.moments)
    assert not circle.exploded
    assert max(moment.gradient_norm for moment in circle.moments) < 10


def test_an_explosion_within_one_step_is_noticed() -> None:
    found = played("plane", "out", 5, temperature=0.01, learning_rate=100.0)
    assert found.exploded
    assert len(found.moments) < 6


@each("loss", ["out", "in"])
def test_a_collapsed_start_lies_on_the_collapse_line(loss: str) -> None:
    found = played("sphere", loss, layout="collapsed", points=30, temperature=1.0)
    assert found.collapse == pytest.approx(math.log(29))
    assert found.moments[0].loss == pytest.approx(math.log(29), abs=1e-3)
    assert found.bound == pytest.approx(math.log(9))


def test_the_line_of_cross_entropy_is_what_one_prediction_for_all_reaches() -> None:
    assert played("circle", "ce").collapse == pytest.approx(math.log(3))
    shares = np.array([54, 3, 3]) / 60
    entropy = -(shares * np.log(shares)).sum()
    assert played("circle", "ce", layout="imbalanced", points=60).collapse == pytest.approx(entropy)


@each("classes", [2, 3, 4])
def test_points_on_the_simplex_and_logits_are_inverse(classes: int) -> None:
    shares = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    place = shares @ simplex_corners(classes)
    logits = logits_at(place, classes)
    np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(), shares)
    np.testing.assert_allclose(to_drawing(logits, logits, "simplex")[0], place, atol=1e-12)
    outside = logits_at(9 * place, classes)
    assert np.isfinite(outside).all()


def test_class_vectors_exist_only_with_cross_entropy() -> None:
    assert played("circle", "out").moments[0].vectors.class_vectors is None
    mixed = played("circle", "out", 3, weight=0.5).moments
    assert mixed[0].parts.keys() == {"SCL", "CE"}
    first, last = (moment.vectors.class_vectors for moment in (mixed[0], mixed[-1]))
    assert not np.allclose(first, last)


def test_identical_points_of_a_class_stay_together() -> None:
    stage, setting = stage_of("plane", "duplicates", 30), Setting(loss="out", temperature=1.0, learning_rate=0.1)
    labels = start_of(stage).labels
    moments = play(stage, setting, first_vectors(stage, setting), 10).moments
    first, last = (moment.places[:, 0] for moment in (moments[0], moments[-1]))
    twins = [(i, j) for i in range(30) for j in range(i) if (first[i] == first[j]).all() and labels[i] == labels[j]]
    assert twins
    assert all(np.allclose(last[i], last[j]) for i, j in twins)
