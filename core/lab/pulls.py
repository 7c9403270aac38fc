"""What pulls and pushes one anchor, candidate by candidate: ∂L_i/∂z_i = Σ_j coefficient_ij z_j, with all else fixed."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import ForceLaw
from core.lab.choices import Setting, Stage, loss_settings
from core.losses.forces import batch_forces


class Pull(NamedTuple):
    """One candidate's coefficient: below 0 it attracts the anchor, above it repels.

    Attributes:
        kind: another text's vector, or a class vector of the classifier.
        number: of the text or class; view: of the text.
        related: whether it is a positive, or the anchor's own class.
        share: p, its part of the softmax.
    """

    kind: Literal["text", "class"]
    number: int
    view: int
    coefficient: float
    related: bool
    share: float = 0.0


def pulls_on(
    anchor: int, stage: Stage, setting: Setting, points: Tensor, class_vectors: Tensor | None, labels: Tensor
) -> tuple[Pull, ...]:
    """What acts on the first vector of a text, by the loss of that anchor alone, mixed as the objective is.

    Args:
        points: [N, V, d], of unit length on circle and sphere; labels: [N].
    Returns: empty for R-Drop, whose texts do not act on each other.
    """
    found: list[Pull] = []
    if setting.known.on == "vectors" and setting.share > 0:
        found += _by_texts(anchor, stage, setting, points, labels)
    if class_vectors is not None:
        share = 1.0 if setting.known.on == "logits" else 1 - setting.share
        found += _by_classes(anchor, points, class_vectors, labels, share)
    return tuple(found)


def _by_texts(anchor: int, stage: Stage, setting: Setting, points: Tensor, labels: Tensor) -> list[Pull]:
    views = points.shape[1]
    if setting.loss == "simcse":
        p = _simcse_shares(anchor, points, setting.temperature)  # [N], over the second views
        wanted = torch.nn.functional.one_hot(torch.tensor(anchor), len(p))
        row = setting.share * (p - wanted) / setting.temperature
        return [
            Pull("text", number, 1, value, number == anchor, share)
            for number, (value, share) in enumerate(zip(row.tolist(), p.tolist(), strict=True))
        ]
    texts = torch.arange(len(points)).repeat_interleave(views)
    classes = labels.repeat_interleave(views)
    law = ForceLaw("in" if setting.loss == "in" else "out", normalize=stage.space != "plane" or setting.loss == "dscl")
    forces = batch_forces(points.flatten(0, 1), classes, temperature=setting.temperature, law=law)
    place = anchor * views
    row = forces.coefficients[place]
    if setting.loss == "dscl":
        alpha = float(loss_settings(setting, stage.space)["alpha"])
        row = (forces.p[place] - _decoupled(place, texts, classes, alpha)) / setting.temperature
    return [
        Pull(
            "text",
            int(texts[j]),
            j % views,
            setting.share * float(row[j]),
            bool(classes[j] == classes[place]),
            float(forces.p[place, j]),
        )
        for j in range(len(row))
        if j != place
    ]


def _decoupled(place: int, texts: Tensor, classes: Tensor, alpha: float) -> Tensor:
    """What DSCL wants p to be: α on the own other view, 1 − α spread over the others of the class."""
    own = (texts == texts[place]) & (torch.arange(len(texts)) != place)
    others = (classes == classes[place]) & (texts != texts[place])
    if not bool(others.any()):
        return own.double()
    return alpha * own.double() / own.sum() + (1 - alpha) * others.double() / others.sum()


def _simcse_shares(anchor: int, points: Tensor, temperature: float) -> Tensor:
    z = torch.nn.functional.normalize(points, dim=-1)
    return (z[:, 1] @ z[anchor, 0] / temperature).softmax(0)


def _by_classes(anchor: int, points: Tensor, class_vectors: Tensor, labels: Tensor, share: float) -> list[Pull]:
    """Of cross-entropy on the first view: the predicted probabilities, less 1 for the own class."""
    with torch.no_grad():
        p = (class_vectors @ points[anchor, 0]).softmax(0)
    own = int(labels[anchor])
    return [
        Pull("class", number, 0, share * (value - (number == own)), number == own, value)
        for number, value in enumerate(p.tolist())
    ]
