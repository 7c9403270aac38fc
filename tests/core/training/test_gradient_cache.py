"""Micro-batches give the gradients of the whole batch, with the random numbers of a plain pass in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from core.encoders.model import Encoder
from core.encoders.taps import Taps
from core.training.gradient_cache import GradientCache
from core.training.outputs import Outputs, Reader, concatenate_outputs, outputs_of
from core.training.phase import Phase
from core.training.step import compute_step
from tests.cases import each
from tests.core.encoders.test_model import CONFIGS, TEXTS
from tests.core.encoders.test_taps import assert_same_gradients, gradients, made
from tests.core.training.made import Draft, build_phase, preset_phases

TAPS = Taps(layers=(2, 3), tokens=((3, 2),))
Run = Callable[[int, int], Outputs]


def two_passes(encoder: Encoder) -> Run:
    def run(start: int, end: int) -> Outputs:
        return outputs_of(encoder.encode([*TEXTS[start:end], *TEXTS[start:end]], TAPS), 2)

    return run


def entangled(outputs: Outputs) -> Tensor:
    """Compute a loss in which every text of the batch depends on every other."""
    flat = torch.cat([vectors.transpose(0, 1).flatten(1) for vectors in outputs.vectors], 1)  # [B, …]
    return (flat @ flat.T).softmax(1).square().sum() + flat.sin().sum()


def cached_gradients(encoder: Encoder, run: Run, part: int) -> dict[str, Tensor]:
    encoder.zero_grad()
    cache = GradientCache(run, len(TEXTS), part)
    entangled(cache.encode()).backward()
    cache.backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None and p.grad.any()}


@each(("model_type", "part"), [*((name, 2) for name in CONFIGS), ("bert", 1), ("bert", 5), ("bert", 9)])
def test_without_dropout_gradients_are_those_of_the_whole_batch(model_type: str, part: int) -> None:
    encoder = made(model_type)
    run = two_passes(encoder)
    expected = gradients(encoder, entangled(run(0, len(TEXTS))))
    assert len(expected) > 10
    assert_same_gradients(cached_gradients(encoder, run, part), expected)


def test_no_activation_is_kept_between_the_two_passes() -> None:
    encoder = made("bert")
    graphs: list[bool] = []
    encoder.blocks[0].register_forward_hook(lambda _m, _i, out: graphs.append(out.requires_grad))
    cache = GradientCache(two_passes(encoder), len(TEXTS), 2)
    outputs = cache.encode()
    assert graphs == [False] * 3
    assert all(vectors.is_leaf and vectors.requires_grad for vectors in outputs.vectors)
    entangled(outputs).backward()
    cache.backward()
    assert graphs == [False] * 3 + [True] * 3


def test_vectors_that_depend_on_no_weight_are_skipped() -> None:
    encoder = made("bert").requires_grad_(False)
    assert cached_gradients(encoder, two_passes(encoder), 2) == {}


# Steps of a phase


def step_gradients(phase: Phase) -> tuple[dict[str, float], dict[str, Tensor]]:
    values = compute_step(phase, 1).values
    return values, {name: p.grad.clone() for name, p in phase.encoder.named_parameters() if p.grad is not None}


PRESETS = ("ce-scl", "mixup", "rdrop-one-stage", "rdrop-two-stage", "multi-layer-token", "dscl")
CASES: dict[str, dict[str, Any]] = {name: preset_phases(name)[0] for name in PRESETS} | {
    "lora": {"trainable": {"part": "lora", "lora_dropout": 0.0}},
    "last blocks": {"trainable": {"part": "last_blocks", "blocks": 1}},
    "checkpointing": {"gradient_checkpointing": True},
    "projection": {"objective": {"terms": [{"loss": "supcon", "projection": "mlp", "layers": [1, 2]}]}},
    "sum": {"objective": {"terms": [{"loss": "supcon", "reduction": "sum"}]}},
    "cutmix": {"objective": {"terms": [{"loss": "cross_entropy", "cutmix": 1.0}]}},
    "angle margin": {"objective": {"terms": [{"loss": "cross_entropy", "angle_margin": 3}]}},
}


# Mixup and head dropout draw the same numbers with and without the cache, if the encoder draws none.
@pytest.mark.parametrize("name", CASES)
def test_without_dropout_a_step_has_the_same_gradients_and_losses(draft: Draft, name: str) -> None:
    (whole_values, whole), (values, found) = (
        step_gradients(build_phase(draft(**CASES[name], **cut), dropout=0.0)) for cut in ({}, {"micro_batch": 3})
    )
    assert found.keys() == whole.keys()
    assert any(gradient.any() for gradient in whole.values())
    for gradient in found:
        torch.testing.assert_close(found[gradient], whole[gradient], atol=2e-5, rtol=1e-3, msg=gradient)
    # A cosine near 0 is a difference of float32 sums, which are larger for a lower τ.
    assert values == pytest.approx(whole_values, rel=1e-4, abs=3e-5)


def test_a_part_as_large_as_the_batch_is_a_plain_step(draft: Draft) -> None:
    values = [step_gradients(build_phase(draft(**cut)))[0] for cut in ({}, {"micro_batch": 8}, {"micro_batch": 20})]
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize("name", ["ce-scl", "rdrop-one-stage", "rdrop-two-stage", "token-scl", "multi-view-scl"])
def test_with_dropout_a_step_is_that_of_a_pass_in_parts_that_keeps_its_graph(draft: Draft, name: str) -> None:
    phase = build_phase(draft(**preset_phases(name)[0], micro_batch=3))
    state = torch.get_rng_state()
    values, found = step_gradients(phase)
    after = torch.get_rng_state()
    phase.encoder.zero_grad()
    torch.set_rng_state(state)
    batch = phase.batch(1)
    outputs = concatenate_outputs([phase.passes.run(batch, start, min(start + 3, 8)) for start in (0, 3, 6)])
    value = phase.objective(Reader(outputs, phase.encoder, phase.plan), batch.labels)
    value.total.backward()
    assert values["loss"] == pytest.approx(value.total.item())
    assert torch.equal(torch.get_rng_state(), after)
    for parameter_name, parameter in phase.encoder.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[parameter_name], parameter.grad, atol=2e-5, rtol=1e-3)
