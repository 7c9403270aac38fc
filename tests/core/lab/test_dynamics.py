"""Points move by the gradient of core's own losses, against a slow loop over finite differences."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError
from core.lab.choices import SPACES, Setting, Stage, loss_names
from core.lab.dynamics import Trajectory, Vectors, first_vectors, logits_at, play, to_drawing
from core.lab.layouts import simplex_corners, start_of
from tests.cases import each

# The sphere differs from the circle in its width alone, so one loss represents it.
EVERY = [(space, loss) for space in SPACES for loss in loss_names(space) if space != "sphere" or loss == "out"]
# The notes' code counts the largest logit as constant. In the plane it is not, so its gradient is not that of the loss.
TRUE_GRADIENT = [(space, loss) for space, loss in EVERY if (space, loss) != ("plane", "dscl-code")]


def played(space: str, loss: str, steps: int = 0, layout: str = "random", points: int = 9, **more: Any) -> Trajectory:
    stage = stage_of(space, layout, points)
    setting = Setting.model_validate({"loss": loss, **more})
    return play(stage, setting, first_vectors(stage, setting), steps)


def stage_of(space: str, layout: str = "random", points: int = 9) -> Stage:
    return Stage.model_validate({"space": space, "layout": layout, "points": points})


def loss_by_loops(stage: Stage, setting: Setting, points: np.ndarray, class_vectors: np.ndarray | None) -> float:
    """Compute (1 − λ)·CE + λ·loss pair by pair. Vectors [N, V, d]."""
    labels = start_of(stage).labels
    n, views, _ = points.shape
    weight = setting.weight if setting.lab_loss.entry.contrastive else 1.0
    tau = setting.temperature

    def log_p(logits: list[float], at: int) -> float:
        most = max(logits)
        return logits[at] - most - math.log(sum(math.exp(x - most) for x in logits))

    def ce() -> float:
        found = 0.0
        for i in range(n):
            for v in range(views):
                logits = [float(points[i, v] @ w) for w in class_vectors] if class_vectors is not None else points[i, v]
                found -= log_p(list(logits), labels[i])
        return found / n / views

    def similarity(one: np.ndarray, other: np.ndarray) -> float:
        if stage.space == "plane" and setting.loss not in ("sincere", "dcl"):
            return float(one @ other) / tau
        return float(one @ other) / np.linalg.norm(one) / np.linalg.norm(other) / tau

    def contrast() -> float:
        found = []
        for i in range(n):
            if setting.loss == "simcse":
                found.append(-log_p([similarity(points[i, 0], points[j, 1]) for j in range(n)], i))
                continue
            for v in range(views):
                others = [(j, u) for j in range(n) for u in range(views) if (j, u) != (i, v)]
                logits = [similarity(points[i, v], points[j, u]) for j, u in others]
                positives = [k for k, (j, _) in enumerate(others) if labels[j] == labels[i]]
                if not positives:
                    continue  # the mean is over anchors with positives
                if setting.loss in ("out", "sum"):
                    found.append(-sum(log_p(logits, k) for k in positives) / len(positives))
                elif setting.loss == "in":
                    found.append(-math.log(sum(math.exp(log_p(logits, k)) for k in positives) / len(positives)))
                elif setting.loss in ("sincere", "dcl"):
                    pulls = [k for k in positives if setting.loss == "sincere" or others[k][0] == i]
                    push = sum(math.exp(logits[k]) for k in range(len(others)) if k not in pulls)
                    itself = setting.loss == "sincere"
                    each_loss = [math.log(push + itself * math.exp(logits[k])) - logits[k] for k in pulls]
                    found.append(sum(each_loss) / len(pulls))
                elif setting.loss == "dscl-formula":
                    weight_of_p = 0.9 * (len(positives) + 1) / len(positives)
                    found.append(-sum(math.log(weight_of_p) + log_p(logits, k) for k in positives) / len(positives))
                elif setting.loss == "dscl-code":
                    top = max(*logits, similarity(points[i, v], points[i, v]))
                    weight_of_p = 0.9 * len(positives) / max(len(positives) - 1, 1)
                    push = math.log(sum(math.exp(logit - top) for logit in logits))
                    found.append(push - weight_of_p * sum(logits[k] - top for k in positives) / len(positives))
                else:
                    own = [k for k in positives if others[k][0] == i]
                    rest = [k for k in positives if others[k][0] != i]
                    # An anchor without others of its class is compared only with its own other view.
                    alpha = 1.0 if not rest else 0.1 if setting.extra is None else setting.extra
                    found.append(
                        -alpha * sum(log_p(logits, k) for k in own) / len(own)
                        - (1 - alpha) * sum(log_p(logits, k) for k in rest) / max(1, len(rest))
                    )
        return sum(found) / (1 if setting.loss == "sum" else len(found))

    def kl() -> float:
        found = 0.0
        for i in range(n):
            p, q = (np.exp([log_p(list(points[i, v]), c) for c in range(len(points[i, v]))]) for v in (0, 1))
            found += 0.5 * float(((p - q) * (np.log(p) - np.log(q))).sum())
        return found / n

    if setting.loss == "ce":
        return ce()
    if setting.loss == "rdrop":
        return ce() + (1.0 if setting.extra is None else setting.extra) * kl()
    return weight * contrast() + ((1 - weight) * ce() if weight < 1 else 0.0)


@each(("weight", "layout"), [(1.0, "random"), (0.6, "imbalanced")])
@each(("space", "loss"), TRUE_GRADIENT)
def test_loss_and_gradient_are_those_of_a_slow_loop(space: str, loss: str, weight: float, layout: str) -> None:
    stage, setting = stage_of(space, layout), Setting(loss=loss, weight=weight, temperature=0.4)
    vectors = first_vectors(stage, setting)
    (moment,) = play(stage, setting, vectors, 0).moments
    class_vectors = vectors.class_vectors
    assert moment.loss == pytest.approx(loss_by_loops(stage, setting, vectors.points, class_vectors), rel=1e-9)

    gradient, h = np.zeros_like(vectors.points), 1e-5
    for at in np.ndindex(*vectors.points.shape):
        ends = []
        for side in (h, -h):
            moved = vectors.points.copy()
            moved[at] += side
            ends.append(loss_by_loops(stage, setting, moved, class_vectors))
        gradient[at] = (ends[0] - ends[1]) / 2 / h
    if space in ("circle", "sphere"):
        gradient -= (gradient * vectors.points).sum(-1, keepdims=True) * vectors.points
    assert moment.gradient_norm == pytest.approx(float(np.linalg.norm(gradient)), rel=1e-5)
    if space != "simplex":
        np.testing.assert_allclose(moment.arrows, -gradient, atol=1e-6)


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
    assert first is not None
    assert last is not None
    assert not np.allclose(first, last)


def test_a_loss_that_a_space_does_not_have_is_refused() -> None:
    stage, setting = stage_of("simplex"), Setting(loss="out")
    vectors = Vectors(np.zeros((9, 1, 3)), None)
    with pytest.raises(ConfigError, match=r"loss = 'out'.*on the simplex, choose one of rdrop, ce"):
        play(stage, setting, vectors, 1)


def test_identical_points_of_a_class_stay_together() -> None:
    stage, setting = stage_of("plane", "duplicates", 30), Setting(loss="out", temperature=1.0, learning_rate=0.1)
    labels = start_of(stage).labels
    moments = play(stage, setting, first_vectors(stage, setting), 10).moments
    first, last = (moment.places[:, 0] for moment in (moments[0], moments[-1]))
    twins = [(i, j) for i in range(30) for j in range(i) if (first[i] == first[j]).all() and labels[i] == labels[j]]
    assert twins
    assert all(np.allclose(last[i], last[j]) for i, j in twins)
