"""Gradients for adversarial views: those of a term's own loss with respect to the embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.config.plan import TermPlan
from core.encoders.model import Encoder
from core.encoders.packing import NO_TEXT, Tokens
from core.losses.evaluate import Contrasted, TermInput
from core.parameters import integer_setting
from core.registry import load
from core.training.outputs import apply_projection, last_layers


def embedding_gradients(
    encoder: Encoder, texts: Sequence[Tokens], labels: Tensor, plan: TermPlan, autocast: torch.autocast
) -> list[Tensor]:
    """Compute the gradient of a term's loss on two dropout passes with respect to the embeddings of the first.

    The loss contrasts pooled vectors, even if the term contrasts tokens. Weights get no gradient.

    Returns: [T, E] for each text.
    Source: Yan et al. 2021, arXiv:2105.11741, section 3.2.
    """
    seen: list[tuple[Tensor, Tensor]] = []

    def capture(embeddings: Tensor, owners: Tensor, _: Tensor) -> Tensor:
        embeddings = embeddings if embeddings.requires_grad else embeddings.detach().requires_grad_()
        seen.append((embeddings, owners))
        return embeddings

    with torch.enable_grad():
        with autocast:
            pooled = encoder.encode([*texts, *texts], change=capture).pooled[len(encoder.blocks)]
        first, second = pooled.chunk(2)
        if plan.term.entry.reads == "logits":
            given = TermInput(logits=(encoder.logits(first), encoder.logits(second)))
            if integer_setting(plan.term.parameters, "angle_margin") > 1:
                given = TermInput(last=last_layers(encoder, (first, second)))
        else:
            given = TermInput(
                layers=(Contrasted(apply_projection(encoder, plan.key, torch.stack([first, second], 1))),)
            )
        value = load(plan.term.entry.compute)(given, labels, plan.term.parameters)
        loss = value[0] if isinstance(value, tuple) else value
        gradients = torch.autograd.grad(loss, [embeddings for embeddings, _ in seen], allow_unused=True)
    found: dict[int, Tensor] = {}
    for (embeddings, owners), gradient in zip(seen, gradients, strict=True):
        known = torch.zeros_like(embeddings) if gradient is None else gradient
        for text in owners.unique().tolist():
            if NO_TEXT < text < len(texts):
                found[text] = known[owners == text]  # [T, E]
    return [found[text] for text in range(len(texts))]


def arrange_gradients(gradients: Sequence[Tensor], embeddings: Tensor, owners: Tensor, texts: Sequence[int]) -> Tensor:
    """Arrange the gradients of texts in rows [R, T, E], at the positions of their tokens; zero elsewhere."""
    laid = torch.zeros_like(embeddings)
    for text, gradient in zip(texts, gradients, strict=True):
        place = owners == text
        if bool(place.any()):
            laid[place] = gradient.to(laid.dtype)
    return laid
