"""Gradients of the terms on a block's weights, against full backward passes of each term alone on a copy."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from core.training.gradients import EVERY_STEPS
from core.training.outputs import Reader
from core.training.phase import Phase
from core.training.step import compute_step
from tests.core.training.made import Draft, additive, build_phase, preset_phases, take_steps

SCL = {"loss": "supcon", "weight": 0.7, "temperature": 0.3}
CE = {"loss": "cross_entropy", "weight": 0.3}
RDROP_SCL = [
    {"loss": "rdrop", "weight": 1.0, "views": [{"view": "dropout"}]},
    {"loss": "supcon", "weight": 0.5, "temperature": 0.3, "views": [{"view": "dropout"}]},
]


def mixed(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"objective": additive(*terms)}


def of_preset(name: str, **more: Any) -> dict[str, Any]:
    return preset_phases(name)[0] | more


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "gunel": (of_preset("ce-scl"), 2),
    "token level": (of_preset("token-scl"), 2),
    "R-Drop and SCL": (mixed(*RDROP_SCL), 2),
    "three terms": (mixed(SCL, CE, {"loss": "simcse", "weight": 0.2, "views": [{"view": "dropout"}]}), 2),
    "contrast one block lower": (mixed(SCL | {"layers": [1]}, CE), 1),
    "tokens of every block": (of_preset("multi-layer-token"), 2),
    "last block": (of_preset("ce-scl", trainable={"part": "last_blocks", "blocks": 1}), 2),
    "adapters": (of_preset("ce-scl", trainable={"part": "lora", "lora_rank": 2, "lora_dropout": 0.0}), 2),
    "gradient cache": (of_preset("token-scl", micro_batch=3), 2),
    "gradient checkpointing": (of_preset("ce-scl", gradient_checkpointing=True), 2),
    "queue": (mixed(SCL | {"queue": 32}, CE), 2),
    "projection head": (mixed(SCL | {"projection": "mlp"}, CE), 2),
    "contrast of logits": (of_preset("dropout-nt-xent-logits"), 2),
}


def alone(phase: Phase, step: int, block: int) -> dict[str, Tensor]:
    """Compute the gradient of each weighted term on a block's trainable weights, by its own full backward pass.

    The whole batch is read at once, whatever the phase's micro-batch. Without dropout the gradients are the same.
    """
    found = {}
    whole = phase.passes._micro_batch
    for term in phase.objective.terms:
        phase.encoder.zero_grad(set_to_none=True)
        phase.passes._micro_batch = None
        torch.manual_seed(7)
        outputs, _ = phase.passes.encode(step, phase.batch(step))
        phase.passes._micro_batch = whole
        reader = Reader(outputs, phase.encoder, phase.plan, queue=phase.queued)
        labels = phase.batch(step).labels
        value = phase.objective(reader, labels)
        (term.weight * value.parts[term.key]).backward()
        weights = [p for p in phase.encoder.blocks[block - 1].parameters() if p.requires_grad]
        found[term.key] = torch.cat(
            [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in weights]
        )
    phase.encoder.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("name", CASES)
def test_norms_and_cosine_are_those_of_each_term_alone(draft: Draft, name: str) -> None:
    settings, block = CASES[name]
    step = EVERY_STEPS + 1
    phase = build_phase(draft(**settings | {"optimiser": {"learning_rate": 1e-3}}), dropout=0.0)
    take_steps(phase, step - 1)
    before = copy.deepcopy(phase)
    torch.manual_seed(7)  # for dropout in the heads
    values = compute_step(phase, step).values
    expected = alone(before, step, block)
    assert values["shared_block"] == block
    assert {key for key in values if key.startswith("shared_grad.")} == {f"shared_grad.{key}" for key in expected}
    for key, gradient in expected.items():
        assert values[f"shared_grad.{key}"] == pytest.approx(float(gradient.norm()), rel=1e-3)
    first, second = list(expected.values())[:2]
    cosine = float(first.double() @ second.double() / first.double().norm() / second.double().norm())
    assert values["shared_cosine"] == pytest.approx(cosine, abs=1e-4)
    assert abs(cosine) > 1e-3


def test_every_few_steps_of_a_phase_are_compared(draft: Draft) -> None:
    reported = take_steps(build_phase(draft()), 8)
    assert [i for i, values in enumerate(reported, start=1) if "shared_cosine" in values] == [1, 1 + EVERY_STEPS]


@pytest.mark.parametrize(
    "settings",
    [
        mixed(CE),
        mixed(SCL | {"weight": 1.0}, CE | {"weight": 0.0}),
        of_preset("ce-scl", trainable={"part": "classifier"}),
        of_preset("dropout-nt-xent-logits", trainable={"part": "classifier"}),
        mixed(SCL | {"layers": [1]}, CE) | {"trainable": {"part": "last_blocks", "blocks": 1}},
    ],
    ids=["one term", "weight 0", "classifier only", "classifier only, both on logits", "a term that moves nothing"],
)
def test_where_there_is_nothing_to_compare_nothing_is_reported(draft: Draft, settings: dict[str, Any]) -> None:
    (values,) = take_steps(build_phase(draft(**settings)), 1)
    assert not [name for name in values if name.startswith(("shared_", "pooled_"))]


def test_a_term_with_zero_gradient_has_no_cosine(draft: Draft) -> None:
    phase = build_phase(draft(**mixed(SCL, CE)))
    phase.labels = torch.arange(len(phase.labels)) % 2
    phase.rows_of = lambda step: [0, 1]
    (values,) = take_steps(phase, 1)  # no anchor has a positive
    assert values["shared_grad.supcon"] == 0
    assert "shared_cosine" not in values
    assert all(math.isfinite(value) for value in values.values())


@pytest.mark.parametrize("settings", [of_preset("token-scl"), of_preset("token-scl", micro_batch=3)])
def test_measuring_gradients_changes_nothing(
    draft: Draft, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = take_steps(build_phase(draft(**settings)), 8)
    monkeypatch.setattr("core.training.step.EVERY_STEPS", 10**6)
    quiet = take_steps(build_phase(draft(**settings)), 8)
    assert [values["loss"] for values in looked] == [values["loss"] for values in quiet]
    assert [values["grad_norm"] for values in looked] == [values["grad_norm"] for values in quiet]
