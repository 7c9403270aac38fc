"""Pull and push on one anchor, by candidate: ∂L_i/∂z_i = Σ_j coefficient_ij z_j, with all else fixed."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from core.catalogue.loss_entry import ForceLaw
from core.lab.choices import Setting, Stage, loss_settings
from core.losses.forces import Candidates, forces_on


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


def pulls_on(
    anchor: int, stage: Stage, setting: Setting, points: Tensor, class_vectors: Tensor | None, labels: Tensor
) -> tuple[Pull, ...]:
    """Return the forces on the first vector of a text, from its own loss as an anchor, mixed as in the objective.

    Args:
        points: [N, V, d], of unit length on circle and sphere.
        labels: [N].
    Returns: pulls of texts, none for a loss without interaction between texts, such as R-Drop, and of class vectors.
    """
    found: list[Pull] = []
    if setting.known.on_vectors and setting.share > 0:
        found += _by_texts(anchor, stage, setting, points, labels)
    if class_vectors is not None:
        share = 1 - setting.share if setting.known.on_vectors else 1.0
        found += _by_classes(anchor, points, class_vectors, labels, share)
    return tuple(found)


def _by_texts(anchor: int, stage: Stage, setting: Setting, points: Tensor, labels: Tensor) -> list[Pull]:
    if setting.known.entry.forces is None:
        return []
    law = ForceLaw(setting.known.entry, loss_settings(setting, stage.space), setting.known.views)
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


def _by_classes(anchor: int, points: Tensor, class_vectors: Tensor, labels: Tensor, share: float) -> list[Pull]:
    """Return the coefficients of cross-entropy on the first view: probabilities, minus 1 for the own class."""
    with torch.no_grad():
        p = (class_vectors @ points[anchor, 0]).softmax(0)
    own = int(labels[anchor])
    return [
        Pull("class", number, 0, share * (value - (number == own)), number == own, value)
        for number, value in enumerate(p.tolist())
    ]
