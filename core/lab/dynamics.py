"""Gradient descent on the points themselves, with the losses of `core.losses`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from core.catalogue.losses import LOSSES
from core.lab.choices import FARTHEST, Setting, Space, Stage, check_fits, loss_settings
from core.lab.layouts import Array, Start, on_space, simplex_corners, start_of, width
from core.lab.pulls import Pull, pulls_on
from core.losses.evaluate import Contrasted, Objective, ObjectiveValue, Term, TermInput, reference_lines
from core.representation.metrics import alignment, uniformity

CE = "cross_entropy"
# Minimum probability of a class for a prediction dragged to an edge of the simplex.
LEAST_SHARE = 1e-4


class Vectors(NamedTuple):
    """The optimised vectors: points [N, V, d] and class vectors [C, d] (None on the simplex)."""

    points: Array
    class_vectors: Array | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The points at one step, and the forces on them.

    Attributes:
        vectors: start of the next step; class vectors are None without a classifier.
        places: [N, V, 2 or 3] drawn positions; arrows: the same shape, direction of the negative gradient.
        loss, parts: nats; parts are unweighted, by symbol.
        gradient_norm: norm of the gradient with respect to all vectors of the texts, tangential on circle and sphere.
        alignment, uniformity: None on the simplex, or if undefined.
        pulls: forces on the anchor; empty without one.
    """

    vectors: Vectors
    places: Array
    arrows: Array
    loss: float
    parts: dict[str, float]
    gradient_norm: float
    alignment: float | None
    uniformity: float | None
    pulls: Sequence[Pull] = ()


@dataclass(frozen=True, slots=True)
class Played:
    """The result of several steps.

    Attributes:
        moments: before the first step and after each.
        collapse, bound: reference lines of the loss without mixed-in cross-entropy, nats; None for none.
        exploded: True if the next moment would exceed FARTHEST or is not finite; the moments end before it.
    """

    moments: list[Moment]
    collapse: float | None
    bound: float | None
    exploded: bool


def first_vectors(stage: Stage, setting: Setting, start: Start | None = None) -> Vectors:
    """Return the start of a stage for a setting: one view of each text, or both."""
    start = start or start_of(stage)
    views = setting.known.views
    return Vectors(start.vectors[:, :views], start.class_vectors)


def play(stage: Stage, setting: Setting, vectors: Vectors, steps: int, anchor: int | None = None) -> Played:
    """Take steps of plain gradient descent.

    Args:
        vectors: initial vectors, in the size of the stage.
        steps: 0 to MOST_STEPS.
        anchor: the text whose pulls are returned.
    Raises: ConfigError for a loss that the space does not offer.
    """
    check_fits(stage, setting)
    with warnings.catch_warnings():
        # The plane shows unnormalised vectors on purpose.
        warnings.filterwarnings("ignore", message="supcon_loss without normalisation")
        return _played(_Scene(stage, setting), vectors, steps, anchor)


def _played(scene: _Scene, vectors: Vectors, steps: int, anchor: int | None) -> Played:
    moments, exploded = [], False
    points, class_vectors = scene.taken(vectors)
    for step in range(steps + 1):
        value = scene.value(points, class_vectors)
        gradients = scene.gradients(value.total, points, class_vectors)
        if not all(bool(one.isfinite().all()) for one in (value.total, *gradients)):
            exploded = True
            break
        moments.append(scene.moment(points, class_vectors, value, gradients[0], anchor))
        if step < steps:
            after = scene.stepped(points, class_vectors, gradients)
            if max(float(one.detach().abs().max()) for one in after if one is not None) > FARTHEST:
                exploded = True
                break
            points, class_vectors = after
    collapse, bound = scene.lines()
    return Played(moments, collapse, bound, exploded)


class _Scene:
    """One stage under one setting."""

    def __init__(self, stage: Stage, setting: Setting) -> None:
        self.stage, self.setting = stage, setting
        self.labels = torch.from_numpy(start_of(stage).labels)
        entry, share = setting.known.entry, setting.share
        terms = [Term(entry.symbol, entry.name, share, loss_settings(setting, stage.space))]
        if share < 1:
            ce = LOSSES.entry(CE)
            terms.append(Term(ce.symbol, CE, 1 - share, ce.defaults))
        self.objective = Objective(terms)
        self.rate = setting.learning_rate

    def taken(self, vectors: Vectors) -> tuple[Tensor, Tensor | None]:
        points = torch.tensor(vectors.points, dtype=torch.float64, requires_grad=True)
        if vectors.class_vectors is None or self.stage.space == "simplex" or not self.setting.has_classifier:
            return points, None
        return points, torch.tensor(vectors.class_vectors, dtype=torch.float64, requires_grad=True)

    def value(self, points: Tensor, class_vectors: Tensor | None) -> ObjectiveValue:
        """Compute the objective. Args: points: [N, V, d]."""
        logits = points if class_vectors is None else points @ class_vectors.T  # [N, V, C]
        given = TermInput(logits=logits.unbind(1), layers=(Contrasted(points),))
        return self.objective(lambda _: given, self.labels)

    def gradients(self, total: Tensor, points: Tensor, class_vectors: Tensor | None) -> list[Tensor]:
        wanted = [points] if class_vectors is None else [points, class_vectors]
        found = torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True)
        if self.stage.space in ("circle", "sphere"):
            # Keep the tangential component: CE with class vectors also pulls radially, which has no effect here.
            along = found[0] - (found[0] * points).sum(-1, keepdim=True) * points
            return [along.detach(), *found[1:]]
        return list(found)

    def stepped(
        self, points: Tensor, class_vectors: Tensor | None, gradients: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor | None]:
        with torch.no_grad():
            moved = points - self.rate * gradients[0]
            moved = torch.from_numpy(on_space(moved.numpy(), self.stage.space))
            turned = None if class_vectors is None else class_vectors - self.rate * gradients[1]
        return moved.requires_grad_(), None if turned is None else turned.requires_grad_()

    def moment(
        self, points: Tensor, class_vectors: Tensor | None, value: ObjectiveValue, gradient: Tensor, anchor: int | None
    ) -> Moment:
        where = points.detach()
        places, arrows = drawn(where.numpy(), -gradient.numpy(), self.stage.space)
        flat = where.flatten(0, 1).numpy()
        views = where.shape[1]
        measured = self.stage.space != "simplex"
        pulls = () if anchor is None else pulls_on(anchor, self.stage, self.setting, where, class_vectors, self.labels)
        return Moment(
            Vectors(where.numpy(), None if class_vectors is None else class_vectors.detach().numpy()),
            places,
            arrows,
            float(value.total.detach()),
            {name: float(part.detach()) for name, part in value.parts.items()},
            float(gradient.norm()),
            alignment(flat, self.labels.repeat_interleave(views).numpy()) if measured else None,
            uniformity(flat) if measured else None,
            pulls,
        )

    def lines(self) -> tuple[float | None, float | None]:
        """Return the collapse line and the bound of the loss, without mixed-in cross-entropy."""
        known = self.setting.known
        if not known.on_vectors:
            # The best constant prediction is the class frequencies.
            shares = torch.bincount(self.labels).double() / len(self.labels)
            return float(torch.special.entr(shares).sum()), None
        n, views = len(self.labels), known.views
        given = TermInput(layers=(Contrasted(torch.zeros(n, views, width(self.stage), dtype=torch.float64)),))
        found = reference_lines(known.entry.name, given, self.labels, loss_settings(self.setting, self.stage.space))
        if found is None:
            return None, None
        return float(found.collapse), None if found.bound is None else float(found.bound)


def drawn(vectors: Array, directions: Array, space: Space) -> tuple[Array, Array]:
    """Map vectors [..., d] and directions to drawing coordinates."""
    if space != "simplex":
        return vectors, directions
    shares = softmax(vectors, axis=-1)
    # Derivative of the softmax along a direction of the logits.
    moved = shares * (directions - (shares * directions).sum(-1, keepdims=True))
    corners = simplex_corners(vectors.shape[-1])
    return shares @ corners, moved @ corners


def logits_at(place: Array, classes: int) -> Array:
    """Return logits [C] of mean 0 whose prediction is drawn at `place`, with a minimum probability for every class."""
    corners = simplex_corners(classes)
    system = np.concatenate([corners.T, np.ones((1, classes))])
    shares = np.linalg.lstsq(system, np.append(place, 1.0), rcond=None)[0].clip(LEAST_SHARE)
    logits: Array = np.log(shares / shares.sum())
    return logits - logits.mean()
