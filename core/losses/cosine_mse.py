"""Regression of the cosine of a pair on its similarity score."""

from __future__ import annotations

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import mean_of
from core.losses.cosent import pair_cosines
from core.losses.evaluate import ReferenceLines, TermInput


def cosine_mse_loss(z1: Tensor, z2: Tensor, scores: Tensor) -> Tensor:
    """Compute the mean of (cos − score)².

    Args:
        z1: [N, d], any scale; normalised here, like z2.
        z2: [N, d], the second text of each pair.
        scores: [N], from 0 to 1.
    Returns: scalar, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Source: Reimers & Gurevych 2019, section 3, arXiv:1908.10084.
    """
    with torch.autocast(z1.device.type, enabled=False):
        cosines = pair_cosines(z1, z2, scores)
        return (cosines - scores.to(cosines.dtype)).square().mean()


def cosine_mse_term(given: TermInput, labels: Tensor, _: Settings) -> Tensor:
    return mean_of([cosine_mse_loss(vectors[:, 0], vectors[:, 1], labels) for vectors, _ in given.layers])


def cosine_mse_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: the mean of (1 − score)², the loss if all vectors are equal."""
    return ReferenceLines((1 - labels.double()).square().mean(), None)
