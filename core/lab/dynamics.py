"""Gradient descent on the points themselves, with the losses of `core.losses`, and the forces on one point.

The pulls on an anchor are ∂L_i/∂z_i = Σ_j coefficient_ij z_j, with all else fixed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from core.catalogue.loss_entry import ForceLaw
from core.catalogue.losses import LOSSES
from core.lab.choices import FARTHEST, Setting, Space, Stage, check_fits, loss_settings
from core.lab.layouts import Array, Start, on_space, simplex_corners, start_of, width
from core.losses.evaluate import Contrasted, Objective, ObjectiveValue, Term, TermInput, reference_lines
from core.losses.forces import Candidates, forces_on
from core.representation.metrics import alignment, uniformity

CE = "cross_entropy"
# Minimum probability of a class for a prediction dragged to an edge of the simplex.
LEAST_SHARE = 1e-4


class Vectors(NamedTuple):
    """The optimised vectors: points [N, V, d] and class vectors [C, d] (None on the simplex)."""

    points: Array
    class_vectors: Array | None


class Pull(NamedTuple):
    """The coefficient of one candidate: negative values attract the anchor, positive values repel it.

    Attributes:
        kind: "text" for a vector of a text, "class" for a class vector of the classifier.
        number: of the text or class.
        view: of the text.
        related: True for a positive, or for the anchor's own class.
        share: p, its share of the softmax; 0 for a loss without one.
    """

    kind: Literal["text", "class"]
    number: int
    view: int
    coefficient: float
    related: bool
    share: float = 0.0


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
class Trajectory:
    """The result of several steps.

    Attributes:
        moments: before the first step and after each.
        collapse, bound: reference lines of the loss without mixed-in cross-entropy, nats; None if it has none.
        exploded: True if the next moment would exceed FARTHEST or is not finite; the moments end before it.
    """

    moments: list[Moment]
    collapse: float | None
    bound: float | None
    exploded: bool


def first_vectors(stage: Stage, setting: Setting, start: Start | None = None) -> Vectors:
    """Return the start of a stage for a setting: one view of each text, or both."""
    start = start or start_of(stage)
    views = setting.lab_loss.entry.views[0]
    return Vectors(start.vectors[:, :views], start.class_vectors)


def play(stage: Stage, setting: Setting, vectors: Vectors, steps: int, anchor: int | None = None) -> Trajectory:
    """Take steps of plain gradient descent.

    Args:
        vectors: initial vectors, of the stage's shape.
        steps: 0 to MOST_STEPS.
        anchor: the text whose pulls are returned.
    Raises: ConfigError for a loss that the space does not offer.
    """
    check_fits(stage, setting)
    entry, share = setting.lab_loss.entry, setting.share
    labels = torch.from_numpy(start_of(stage).labels)
    terms = [Term(entry.symbol, entry.name, share, loss_settings(setting, stage.space))]
    if share < 1:
        ce = LOSSES.entry(CE)
        terms.append(Term(ce.symbol, CE, 1 - share, ce.defaults))
    objective = Objective(terms)
    start = [vectors.points]
    if vectors.class_vectors is not None and (share < 1 or not entry.contrastive):
        start.append(vectors.class_vectors)
    tensors = [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in start]
    moments, exploded = list[Moment](), False
    with warnings.catch_warnings():
        # The plane shows unnormalised vectors on purpose.
        warnings.filterwarnings("ignore", message="supcon_loss without normalisation")
        for step in range(steps + 1):
            points, class_vectors = tensors[0], tensors[1] if len(tensors) > 1 else None  # [N, V, d], [C, d]
            value = _evaluate(objective, points, class_vectors, labels)
            gradients = list(torch.autograd.grad(value.total, tensors, allow_unused=True, materialize_grads=True))
            if stage.space in ("circle", "sphere"):
                # Keep the tangential component: CE with class vectors also pulls radially, which has no effect here.
                along = gradients[0] - (gradients[0] * points).sum(-1, keepdim=True) * points
                gradients[0] = along.detach()
            if not all(bool(one.isfinite().all()) for one in (value.total, *gradients)):
                exploded = True
                break
            moments.append(_moment(stage, setting, labels, points.detach(), class_vectors, value, gradients[0], anchor))
            if step == steps:
                break
            moved = [
                one.detach() - setting.learning_rate * along for one, along in zip(tensors, gradients, strict=True)
            ]
            moved[0] = torch.from_numpy(on_space(moved[0].numpy(), stage.space))
            if max(float(one.abs().max()) for one in moved) > FARTHEST:
                exploded = True
                break
            tensors = [one.requires_grad_() for one in moved]
        collapse, bound = _reference_lines(stage, setting, labels)
    return Trajectory(moments, collapse, bound, exploded)


def _evaluate(objective: Objective, points: Tensor, class_vectors: Tensor | None, labels: Tensor) -> ObjectiveValue:
    logits = points if class_vectors is None else points @ class_vectors.T  # [N, V, C]
    given = TermInput(logits=logits.unbind(1), layers=(Contrasted(points),))
    return objective(lambda _: given, labels)


def _moment(
    stage: Stage,
    setting: Setting,
    labels: Tensor,
    points: Tensor,
    class_vectors: Tensor | None,
    value: ObjectiveValue,
    gradient: Tensor,
    anchor: int | None,
) -> Moment:
    places, arrows = to_drawing(points.numpy(), -gradient.numpy(), stage.space)
    flat = points.flatten(0, 1).numpy()
    measured = stage.space != "simplex"
    return Moment(
        Vectors(points.numpy(), None if class_vectors is None else class_vectors.detach().numpy()),
        places,
        arrows,
        float(value.total.detach()),
        {name: float(part.detach()) for name, part in value.parts.items()},
        float(gradient.norm()),
        alignment(flat, labels.repeat_interleave(points.shape[1]).numpy()) if measured else None,
        uniformity(flat) if measured else None,
        () if anchor is None else pulls_on(anchor, stage, setting, points, class_vectors, labels),
    )


def _reference_lines(stage: Stage, setting: Setting, labels: Tensor) -> tuple[float | None, float | None]:
    """Return the collapse line and the bound of the loss, without mixed-in cross-entropy."""
    entry = setting.lab_loss.entry
    if not entry.contrastive:
        # The best constant prediction is the class frequencies.
        shares = torch.bincount(labels).double() / len(labels)
        return float(torch.special.entr(shares).sum()), None
    given = TermInput(layers=(Contrasted(torch.zeros(len(labels), entry.views[0], width(stage), dtype=torch.float64)),))
    found = reference_lines(entry.name, given, labels, loss_settings(setting, stage.space))
    if found is None:
        return None, None
    return float(found.collapse), None if found.bound is None else float(found.bound)


def pulls_on(
    anchor: int, stage: Stage, setting: Setting, points: Tensor, class_vectors: Tensor | None, labels: Tensor
) -> tuple[Pull, ...]:
    """Return the forces on the first vector of a text, from its own loss as an anchor, mixed as in the objective.

    Args:
        points: [N, V, d], of unit length on circle and sphere.
        labels: [N].
    Returns: pulls of texts and of class vectors. A loss without interaction between texts, such as R-Drop, has no
        pulls of texts.
    """
    found: list[Pull] = []
    contrastive = setting.lab_loss.entry.contrastive
    if contrastive and setting.share > 0:
        found += _by_texts(anchor, stage, setting, points, labels)
    if class_vectors is not None:
        share = 1 - setting.share if contrastive else 1.0
        with torch.no_grad():
            p = (class_vectors @ points[anchor, 0]).softmax(0)
        # The coefficients of cross-entropy are the probabilities, minus 1 for the own class.
        own = int(labels[anchor])
        found += [
            Pull("class", number, 0, share * (value - (number == own)), number == own, value)
            for number, value in enumerate(p.tolist())
        ]
    return tuple(found)


def _by_texts(anchor: int, stage: Stage, setting: Setting, points: Tensor, labels: Tensor) -> list[Pull]:
    entry = setting.lab_loss.entry
    if entry.forces is None:
        return []
    law = ForceLaw(entry, loss_settings(setting, stage.space), entry.views[0])
    n, v, _ = points.shape
    texts, views = torch.arange(n).repeat_interleave(v), torch.arange(v).repeat(n)  # [M], M = N·V
    # The anchor is the first view of its text.
    chosen = views == 1 if law.second_views else (texts != anchor) | (views != 0)
    texts, views = texts[chosen], views[chosen]
    vectors = points.flatten(0, 1)[chosen]  # [M, d]
    one = points[anchor, 0]
    if law.normalize:
        vectors, one = torch.nn.functional.normalize(vectors, dim=1), torch.nn.functional.normalize(one, dim=0)
    own = (texts == anchor).double()
    alike = (labels[texts] == labels[anchor]).double() - own
    found = forces_on(Candidates(*(row.unsqueeze(0) for row in (vectors @ one, torch.ones_like(own), own, alike))), law)
    shares = torch.zeros_like(own) if found.p is None else found.p[0]
    return [
        Pull("text", int(texts[j]), int(views[j]), setting.share * coefficient, bool(found.positives[0, j]), share)
        for j, (coefficient, share) in enumerate(zip(found.coefficients[0].tolist(), shares.tolist(), strict=True))
    ]


def to_drawing(vectors: Array, directions: Array, space: Space) -> tuple[Array, Array]:
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
