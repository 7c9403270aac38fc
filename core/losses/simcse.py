"""SimCSE: each sentence identifies its other embedding among those of the batch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from core.catalogue.loss_entry import Settings
from core.losses.arguments import check_matrix, check_positive, check_shape, mean_of, to_full_precision, unit_rows
from core.losses.evaluate import ReferenceLines, TermInput
from core.losses.forces import Candidates
from core.losses.supcon import supcon_loss
from core.parameters import number


def simcse_loss(
    z1: Tensor,
    z2: Tensor,
    z3: Tensor | None = None,
    *,
    temperature: float = 0.05,
    hard_negative_weight: float = 0.0,
    symmetric: bool = False,
    normalize: bool = True,
    labels: Tensor | None = None,
) -> Tensor:
    """Compute cross-entropy over the similarities of z1 with z2 and the hard negatives z3; a row's target is its pair.

    Args:
        z1: [N, d], any scale; normalised here, like z2 and z3, unless normalize=False.
        z2: [N, d], the other embedding of the same sentence (second dropout pass, or entailed sentence).
        z3: [N, d], a hard negative of each sentence (contradiction), which is a negative of all other rows too.
        temperature: > 0, unitless.
        hard_negative_weight: added to the logit of a row's own hard negative; finite.
        symmetric: average z1 → z2 and z2 → z1; z3 and its weight are used in both directions.
        labels: [N]; if given, the other sentences of a row's label are no candidates of that row, so they are not
            pushed away. Not with z3.
    Returns: scalar, nats, mean over rows, in float32 or better.
    Raises: ValueError naming the argument, its value and the expected values.
    Edge: one pair without hard negatives gives 0, and so do labels that are all equal.
    Source: Gao et al. 2021, eq. 1 and 5, arXiv:2104.08821.
    """
    check_positive("temperature", temperature)
    if not math.isfinite(hard_negative_weight):
        raise ValueError(f"hard_negative_weight = {hard_negative_weight}: expected a finite number")
    check_matrix("z1", z1)
    check_shape("z2", z2, tuple(z1.shape), "the shape of z1")
    if z3 is not None:
        check_shape("z3", z3, tuple(z1.shape), "the shape of z1")
    left_out = None if labels is None else other_texts_alike(labels)
    if left_out is not None:
        check_shape("labels", left_out, (len(z1),) * 2, "from one label per row")
        if z3 is not None:
            raise ValueError("labels and z3 are both given: expected at most one of them")
    with torch.autocast(z1.device.type, enabled=False):
        one, two = to_full_precision(z1), to_full_precision(z2)
        hard = None if z3 is None else to_full_precision(z3)
        if normalize:
            one, two, hard = unit_rows(one), unit_rows(two), None if hard is None else unit_rows(hard)
        loss = _one_way(one, two, hard, temperature, hard_negative_weight, left_out)
        if symmetric:
            loss = 0.5 * (loss + _one_way(two, one, hard, temperature, hard_negative_weight, left_out))
        return loss


def other_texts_alike(labels: Tensor) -> Tensor:
    """Return the mask [N, N] of the pairs of different rows with the same label."""
    labels = labels.reshape(-1)
    return (labels.unsqueeze(1) == labels).fill_diagonal_(False)


def _one_way(
    rows: Tensor, columns: Tensor, hard: Tensor | None, temperature: float, weight: float, left_out: Tensor | None
) -> Tensor:
    n = len(rows)
    if hard is None:
        logits = rows @ columns.T / temperature  # [N, N]
        if left_out is not None:
            logits = logits.masked_fill(left_out.to(logits.device), -math.inf)
    else:
        logits = rows @ torch.cat([columns, hard]).T / temperature  # [N, 2N]
        logits = logits + weight * torch.eye(n, 2 * n, dtype=logits.dtype, device=logits.device).roll(n, 1)
    return torch.nn.functional.cross_entropy(logits, torch.arange(n, device=logits.device))


def simcse_term(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    temperature, symmetric = number(settings, "temperature"), bool(settings["symmetric"])
    shared: dict[str, Any] = {"temperature": temperature, "normalize": bool(settings["normalize"])}
    filters = bool(settings["label_filter"])
    if settings["candidates"] == "all":
        left_out = other_texts_alike(labels) if filters else None
        return mean_of([supcon_loss(vectors, left_out=left_out, **shared) for vectors, _ in given.layers])
    shared |= {"symmetric": symmetric, "labels": labels if filters else None}
    return mean_of([simcse_loss(vectors[:, 0], vectors[:, 1], **shared) for vectors, _ in given.layers])


def supervised_simcse_term(given: TermInput, _: Tensor, settings: Settings) -> Tensor:
    temperature, hard = number(settings, "temperature"), number(settings, "hard_negative_weight")
    return mean_of(
        [
            simcse_loss(*vectors.unbind(1), temperature=temperature, hard_negative_weight=hard)
            for vectors, _ in given.layers
        ]
    )


def simcse_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: ln N if only the N second views are candidates, else ln(2N − 1).

    With the label filter, it is the mean of the logarithms of what remains.
    """
    n, v, _ = given.layers[0].vectors.shape
    every, of_text = (n * v - 1, v) if settings.get("candidates") == "all" else (n, 1)
    if not settings.get("label_filter"):
        return ReferenceLines(torch.tensor(math.log(max(1, every)), dtype=torch.float64), None)
    candidates = every - of_text * other_texts_alike(labels).sum(1)  # [N]
    return ReferenceLines(candidates.double().log().mean(), None, (candidates > 1).double().mean())


def supervised_simcse_lines(given: TermInput, labels: Tensor, settings: Settings) -> ReferenceLines:
    """Return the collapse line: ln(2N − 1 + e^w) with hard negatives of weight w."""
    n, v, _ = given.layers[0].vectors.shape
    hard = math.exp(number(settings, "hard_negative_weight")) - 1
    return ReferenceLines(torch.tensor(math.log(n * (v - 1) + hard), dtype=torch.float64), None)


def simcse_anchor_losses(candidates: Candidates, settings: Settings) -> Tensor:
    """Return the loss of each anchor, [A]; see `core.losses.forces`."""
    log_p = candidates.log_p(number(settings, "temperature")).masked_fill(candidates.own == 0, 0.0)
    return -(candidates.own * log_p).sum(1) / candidates.own.sum(1)
