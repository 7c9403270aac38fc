"""CoSENT: cosines of pairs in the order of their similarity scores."""

from __future__ import annotations

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_matrix, check_positive, check_shape, mean_of, to_full_precision, unit_rows
from core.losses.evaluate import ReferenceLines, TermInput
from core.parameters import number


def cosent_loss(z1: Tensor, z2: Tensor, scores: Tensor, *, temperature: float = 0.05) -> Tensor:
    """Compute log(1 + Σ e^{(cos_j − cos_i) / τ}) over the pairs i, j of a batch with score_i > score_j.

    Args:
        z1: [N, d], any scale; normalised here, like z2.
        z2: [N, d], the second text of each pair.
        scores: [N], higher for more similar texts; only their order matters.
        temperature: > 0, unitless.
    Returns: scalar, nats, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: equal scores order nothing and give 0 with the graph attached.
    Source: Su Jianlin 2022, https://kexue.fm/archives/8847.
    """
    check_positive("temperature", temperature)
    with torch.autocast(z1.device.type, enabled=False):
        cosines = pair_cosines(z1, z2, scores)
        differences = (cosines.unsqueeze(0) - cosines.unsqueeze(1)) / temperature  # [i, j]: cos_j − cos_i
        wrong = differences.masked_fill(~_ordered(scores), -torch.inf).flatten()
        return torch.cat([wrong, wrong.new_zeros(1)]).logsumexp(0)


def pair_cosines(z1: Tensor, z2: Tensor, scores: Tensor) -> Tensor:
    """Return the cosine of each pair, [N]. Raises: ValueError for shapes that differ."""
    check_matrix("z1", z1)
    check_shape("z2", z2, tuple(z1.shape), "the shape of z1")
    check_shape("scores", scores, (len(z1),), "one for each pair")
    return (unit_rows(to_full_precision(z1)) * unit_rows(to_full_precision(z2))).sum(1)


def _ordered(scores: Tensor) -> Tensor:
    """Return the mask [N, N] of the pairs i, j with score_i > score_j."""
    return scores.unsqueeze(1) > scores.unsqueeze(0)


def cosent_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    temperature = number(settings, "temperature")
    return mean_of(
        [cosent_loss(vectors[:, 0], vectors[:, 1], labels, temperature=temperature) for vectors, _ in given.layers]
    )


def cosent_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: ln(1 + number of ordered pairs), the loss if all cosines are equal."""
    return ReferenceLines(_ordered(labels).sum().double().log1p(), None)
