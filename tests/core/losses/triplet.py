"""A loss defined outside `core`: the triplet loss over all triplets of a batch.

Source: Schroff et al. 2015, arXiv:1503.03832, eq. 2, with cosines instead of distances.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from core.catalogue.loss_entry import CONTRAST, Forces, LossEntry, Settings
from core.losses.evaluate import ReferenceLines, TermInput
from core.losses.forces import Candidates
from core.parameters import Parameter, number


def triplet_loss(features: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Return the mean of max(0, s_in − s_ip + m) over all triplets. Args: features [N, d]; labels [N]."""
    z = normalize(features, dim=1)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    positives = same & ~same.new_ones(len(same)).diag()
    losses = triplets(z @ z.T, positives, ~same, margin)
    return losses.sum() / max(1, int((positives.sum(1) * (~same).sum(1)).sum()))


def triplets(similarity: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Return max(0, s_in − s_ip + m), [A, M, M], positive second. Invalid triplets are 0."""
    gap = similarity.unsqueeze(1) - similarity.unsqueeze(2) + margin
    return gap.clamp(min=0) * (positives.unsqueeze(2) & negatives.unsqueeze(1))


def triplet_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    return triplet_loss(given.layers[0].vectors[:, 0], labels, number(settings, "margin"))


def triplet_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: with equal vectors, every triplet has the margin."""
    at = torch.tensor(number(settings, "margin"), dtype=torch.float64)
    return ReferenceLines(at, torch.zeros_like(at))


def triplet_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    positives = candidates.own + candidates.alike > 0
    negatives = (candidates.copies > 0) & ~positives
    losses = triplets(candidates.similarity, positives, negatives, number(settings, "margin"))
    return losses.sum((1, 2)) / (positives.sum(1) * negatives.sum(1)).clamp(min=1)


TRIPLET = LossEntry(
    name="triplet",
    label="Triplet",
    symbol="Triplet",
    latex=r"\text{Triplet}=\max(0,\,z_i\cdot z_n-z_i\cdot z_p+{margin})",
    summary="A positive has to be nearer than a negative by a margin.",
    source="Schroff et al. 2015, arXiv:1503.03832",
    reads="vectors",
    colour="#123456",
    compute="tests.core.losses.triplet:triplet_term",
    lines="tests.core.losses.triplet:triplet_lines",
    forces=Forces("tests.core.losses.triplet:triplet_anchor_losses", softmax=False),
    levels=("sentence",),
    parameters=(
        Parameter("margin", "Margin m", 0.5, "By how much.", low=0.0, high=2.0, slider=(0.0, 1.0), knob=True),
        *(parameter for parameter in CONTRAST if parameter.name not in ("k", "clusters")),
    ),
)
