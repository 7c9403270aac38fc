"""The gradient for an adversarial view, against a gradient computed text by text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from core.config.fields import build
from core.config.objective import ObjectiveConfig
from core.config.plan import TermPlan, plan_phase
from core.encoders.model import Encoder
from core.encoders.packing import NO_TEXT
from core.losses import dscl_loss, rdrop_loss, simcse_loss, supcon_loss
from core.training.adversarial import arrange_gradients, embedding_gradients
from tests.cases import each
from tests.core.encoders.test_model import TEXTS
from tests.core.encoders.test_taps import made
from tests.core.training.made import CPU

LABELS = torch.tensor([0, 1, 0, 1, 1])
FAMILIES = ["bert", "electra", "deberta-v2"]  # the last one reads its texts in chunks
TERM_SETTINGS: dict[str, dict[str, Any]] = {
    "supcon": {"temperature": 0.5},
    "dscl": {"temperature": 0.5},
    "simcse": {"temperature": 0.5},
    "rdrop": {},
}


def plan_of(loss: str) -> TermPlan:
    term = {"loss": loss, "views": [{"view": "adversarial"}]} | TERM_SETTINGS[loss]
    return plan_phase(build(ObjectiveConfig, {"terms": [term]}), 3).terms[0]


def by_hand(loss: str, first: Tensor, second: Tensor, encoder: Encoder) -> Tensor:
    views = torch.stack([first, second], 1)
    if loss == "supcon":
        return supcon_loss(views, LABELS, temperature=0.5)
    if loss == "dscl":
        return dscl_loss(views, LABELS, alpha=0.1, temperature=0.5)
    if loss == "simcse":
        return simcse_loss(first, second, temperature=0.5)
    return rdrop_loss(encoder.logits(first), encoder.logits(second), LABELS, alpha=1.0).total


def alone(encoder: Encoder) -> tuple[list[Tensor], Tensor]:
    """Encode texts one by one. Returns: embeddings [T, E] of each text, as leaves, and pooled vectors [B, H]."""
    leaves: list[Tensor] = []

    def capture(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
        leaves.append(output.detach().requires_grad_())
        return leaves[-1]

    handle = encoder.base.embeddings.register_forward_hook(capture)
    pooled = [encoder.base(input_ids=torch.tensor([text.ids])).last_hidden_state[0, 0] for text in TEXTS]
    handle.remove()
    return leaves, torch.stack(pooled)


@each("loss", TERM_SETTINGS)
@each("model_type", FAMILIES)
def test_the_gradient_is_that_of_the_terms_loss_by_the_first_pass(model_type: str, loss: str) -> None:
    encoder = made(model_type)  # in evaluation mode, so that passes are repeatable
    found = embedding_gradients(encoder, TEXTS, LABELS, plan_of(loss), CPU.autocast)
    leaves, first = alone(encoder)
    _, second = alone(encoder)
    expected = torch.autograd.grad(by_hand(loss, first, second, encoder), leaves)
    assert max(gradient.abs().max() for gradient in expected) > 1e-4
    for gradient, wanted, text in zip(found, expected, TEXTS, strict=True):
        assert gradient.shape == (len(text.ids), wanted.shape[-1])
        torch.testing.assert_close(gradient, wanted[0], atol=1e-5, rtol=1e-3)


@each("frozen", [False, True])
def test_no_weight_collects_a_gradient_and_frozen_embeddings_have_one(frozen: bool) -> None:
    encoder = made("bert").train()
    if frozen:
        encoder.requires_grad_(False)
        encoder.blocks[2].requires_grad_(True)
    with torch.no_grad():
        found = embedding_gradients(encoder, TEXTS, LABELS, plan_of("simcse"), CPU.autocast)
    assert all(gradient.any() and not gradient.requires_grad for gradient in found)
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_a_projection_head_is_part_of_the_loss() -> None:
    encoder = made("bert")
    plain = embedding_gradients(encoder, TEXTS, LABELS, plan_of("supcon"), CPU.autocast)
    encoder.projections["supcon"] = torch.nn.Linear(16, 3)
    projected = embedding_gradients(encoder, TEXTS, LABELS, plan_of("supcon"), CPU.autocast)
    assert not torch.allclose(torch.cat(plain), torch.cat(projected), rtol=0.1)


def test_gradients_land_on_the_tokens_of_their_text() -> None:
    owners = torch.tensor([[3, 3, 0, NO_TEXT], [1, 1, 1, 5]])
    embeddings = torch.zeros(2, 4, 2)
    gradients = [torch.full((2, 2), 7.0), torch.arange(6.0).view(3, 2), torch.ones(4, 2)]
    texts: Sequence[int] = [3, 1, 9]  # the last one belongs to another group of rows
    laid = arrange_gradients(gradients, embeddings, owners, texts)
    assert torch.equal(laid[0], torch.tensor([[7.0, 7.0], [7.0, 7.0], [0.0, 0.0], [0.0, 0.0]]))
    assert torch.equal(laid[1, :3], gradients[1])
    assert not laid[1, 3].any()
