"""An objective: a list of weighted terms, evaluated to a total and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from core.losses.cross_entropy import cross_entropy_loss, mixup_loss
from core.losses.dscl import dscl_loss
from core.losses.rdrop import rdrop_loss
from core.losses.simcse import simcse_loss
from core.losses.supcon import supcon_loss
from core.parameters import Value, number

Settings = Mapping[str, Value]


class Contrasted(NamedTuple):
    """What is contrasted in one layer: vectors [N, V, d] and, where views are missing, view_mask [N, V]."""

    vectors: Tensor
    view_mask: Tensor | None = None


class Mixed(NamedTuple):
    """How texts were mixed before the classifier: row numbers [N] of the partners, and the first text's share."""

    partners: Tensor
    share: Tensor


class TermInput(NamedTuple):
    """What one term reads.

    Attributes:
        logits: [N, C] for each view, for a loss on logits.
        layers: one entry per contrasted layer, for a loss on vectors.
        queue: further candidates, features [Q, d] and labels [Q].
    """

    logits: tuple[Tensor, ...] = ()
    layers: tuple[Contrasted, ...] = ()
    queue: tuple[Tensor, Tensor] | None = None
    mixed: Mixed | None = None


class Term(NamedTuple):
    """One weighted loss with its parameters, under a name of its own."""

    key: str
    loss: str
    weight: float
    parameters: Settings


class ObjectiveValue(NamedTuple):
    """Total, terms and parts, in nats; unweighted: total = Σ weight · term.

    `parts` has every term under its key, and the pieces of a term that has some under "<key>.<piece>".
    """

    total: Tensor
    parts: dict[str, Tensor]


# (input, labels [N], parameters) → the term, or its value and its pieces
TermFunction = Callable[[TermInput, Tensor, Settings], "Tensor | tuple[Tensor, dict[str, Tensor]]"]


def _cross_entropy(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    if given.mixed is not None:
        partners, share = given.mixed
        return _mean([mixup_loss(logits, labels, partners, share) for logits in given.logits])
    smoothing, margin = number(settings, "label_smoothing"), number(settings, "margin")
    return _mean([cross_entropy_loss(x, labels, label_smoothing=smoothing, margin=margin) for x in given.logits])


def _supcon(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    return _mean(
        [
            supcon_loss(
                vectors,
                labels,
                temperature=number(settings, "temperature"),
                variant="in" if settings["variant"] == "in" else "out",
                normalize=bool(settings["normalize"]),
                view_mask=view_mask,
                queue=given.queue,
            )
            for vectors, view_mask in given.layers
        ]
    )


def _dscl(given: TermInput, labels: Tensor, settings: Settings) -> Tensor:
    alpha: float | Literal["uniform"] = "uniform" if settings["uniform"] else number(settings, "alpha")
    temperature = number(settings, "temperature")
    return _mean([dscl_loss(layer.vectors, labels, alpha=alpha, temperature=temperature) for layer in given.layers])


def _simcse(given: TermInput, _: Tensor, settings: Settings) -> Tensor:
    temperature, symmetric = number(settings, "temperature"), bool(settings["symmetric"])
    if settings["candidates"] == "all":
        return _mean([supcon_loss(vectors, temperature=temperature) for vectors, _ in given.layers])
    return _mean(
        [
            simcse_loss(vectors[:, 0], vectors[:, 1], temperature=temperature, symmetric=symmetric)
            for vectors, _ in given.layers
        ]
    )


def _simcse_supervised(given: TermInput, _: Tensor, settings: Settings) -> Tensor:
    temperature, hard = number(settings, "temperature"), number(settings, "hard_negative_weight")
    return _mean(
        [
            simcse_loss(*vectors.unbind(1), temperature=temperature, hard_negative_weight=hard)
            for vectors, _ in given.layers
        ]
    )


def _rdrop(given: TermInput, labels: Tensor, settings: Settings) -> tuple[Tensor, dict[str, Tensor]]:
    first, second = given.logits
    total, ce, kl = rdrop_loss(first, second, labels, alpha=number(settings, "alpha"))
    return total, {"ce": ce, "kl": kl}


TERMS: Mapping[str, TermFunction] = {
    "cross_entropy": _cross_entropy,
    "supcon": _supcon,
    "dscl": _dscl,
    "simcse": _simcse,
    "simcse_supervised": _simcse_supervised,
    "rdrop": _rdrop,
}


class Objective:
    """Evaluates weighted terms on one batch.

    A term of weight 0 is still reported, but outside the graph: it costs no backward pass and moves nothing.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)

    def __call__(self, read: Callable[[str], TermInput], labels: Tensor) -> ObjectiveValue:
        """Args: read gives a term's input by its key; labels [N]."""
        found: dict[str, dict[str, Tensor]] = {}
        total = torch.zeros((), device=labels.device)
        # Those that count come first, so that what terms share is computed with its graph.
        for term in sorted(self.terms, key=lambda term: term.weight == 0):
            with torch.set_grad_enabled(term.weight > 0):
                value = TERMS[term.loss](read(term.key), labels, term.parameters)
            term_total, pieces = value if isinstance(value, tuple) else (value, {})
            found[term.key] = {term.key: term_total, **{f"{term.key}.{name}": piece for name, piece in pieces.items()}}
            if term.weight > 0:
                total = total + term.weight * term_total
        return ObjectiveValue(total, {name: part for term in self.terms for name, part in found[term.key].items()})


def _mean(losses: Sequence[Tensor]) -> Tensor:
    return losses[0] if len(losses) == 1 else torch.stack(list(losses)).mean()
