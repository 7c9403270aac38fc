"""Passes in bfloat16, values that stay in float32, and bit-exact resumption of a run in bfloat16."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from core.advice.prepare import prepare
from core.config import RunConfig
from core.training.checkpoints import Checkpoints
from core.training.encode import encoder_autocast, in_bfloat16
from core.training.loop import train
from core.training.untrained import VectorCache
from tests.cases import each
from tests.core.training.made import (
    Draft,
    assert_same_run,
    build_phase,
    frames_of,
    preset_phases,
    run_draft,
    run_in_attempts,
    take_steps,
)

CPU = torch.device("cpu")


@each(
    ("precision", "device", "lowered"),
    [
        ("bfloat16", "cpu", True),
        ("float32", "cpu", False),
        ("bfloat16", "cuda", True),
        ("float32", "cuda", False),
        ("auto", "cpu", False),
        ("auto", "cuda", True),
    ],
)
def test_the_encoder_computes_in_the_precision_of_the_run(precision: Any, device: str, lowered: bool) -> None:
    assert in_bfloat16(precision, device) is lowered
    if device == "cpu":  # torch warns about CUDA's autocast on machines without a GPU
        with encoder_autocast(precision, CPU):
            assert torch.is_autocast_enabled("cpu") is lowered
            assert torch.get_autocast_dtype("cpu") == torch.bfloat16


@pytest.mark.parametrize(("bfloat16", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_a_prepared_run_says_its_precision(draft: Draft, bfloat16: bool, precision: str) -> None:
    assert prepare(draft(), gpu=False, bfloat16=bfloat16)[0].precision == precision
    chosen = draft(more={"precision": "float32"})
    assert prepare(chosen, gpu=False, bfloat16=bfloat16)[0].precision == "float32"


def lowered_phase(given: RunConfig, dropout: float | None = None) -> Any:
    phase = build_phase(given, dropout=dropout)
    phase.machine = phase.machine._replace(autocast=encoder_autocast("bfloat16", CPU))
    phase.setup = phase.setup._replace(machine=phase.machine)
    phase.passes = phase._passes(phase.plan)
    return phase


@pytest.mark.parametrize("preset", ["rdrop-two-stage", "token-scl", "multi-view-scl"])
def test_blocks_compute_in_bfloat16_and_norms_classifier_and_weights_in_float32(draft: Draft, preset: str) -> None:
    phase = lowered_phase(draft(more={"phases": preset_phases(preset)}))
    seen: dict[str, torch.dtype] = {}  # of the output of each linear layer and norm
    for name, module in phase.encoder.named_modules():
        if isinstance(module, nn.Linear | nn.LayerNorm):
            module.register_forward_hook(lambda _m, _i, output, name=name: seen.update({name: output.dtype}))
    take_steps(phase, 1)
    head = phase.encoder.family.head_modules
    blocks = {name: dtype for name, dtype in seen.items() if "encoder.layer" in name and "LayerNorm" not in name}
    assert blocks
    assert set(blocks.values()) == {torch.bfloat16}
    others = {n: d for n, d in seen.items() if "LayerNorm" in n or any(f"model.{path}" in n for path in head)}
    assert others
    assert set(others.values()) == {torch.float32}
    assert {parameter.dtype for parameter in phase.encoder.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in phase.encoder.parameters() if p.grad is not None} <= {torch.float32}


@pytest.mark.parametrize("preset", ["ce-scl", "token-scl", "multi-layer-sentence", "rdrop-one-stage", "dscl", "simcse"])
def test_a_step_in_bfloat16_is_one_in_float32_but_for_rounding(draft: Draft, preset: str) -> None:
    given = draft(more={"phases": preset_phases(preset)})
    torch.manual_seed(0)
    (whole,) = take_steps(build_phase(given, dropout=0.0), 1)
    (lowered,) = take_steps(lowered_phase(given, dropout=0.0), 1)
    for name, value in whole.items():
        if name.startswith(("loss", "collapse_line", "lower_bound")):
            assert lowered[name] == pytest.approx(value, rel=2e-2, abs=2e-3), name
    assert any(lowered[name] != value for name, value in whole.items() if name.startswith("loss"))


def test_a_run_in_bfloat16_resumes_bit_for_bit(draft: Draft, tmp_path: Path) -> None:
    config, data, straight = run_draft(
        draft(more={"precision": "bfloat16"}), checkpoints=Checkpoints(tmp_path / "straight")
    )
    resumed = run_in_attempts(config, data, tmp_path / "resumed", [3, 6])
    assert_same_run(resumed, straight)


def test_untrained_vectors_of_the_two_precisions_are_kept_apart(draft: Draft) -> None:
    cache: VectorCache = {}
    config, data = prepare(draft(more={"precision": "bfloat16"}), gpu=False)
    first = frames_of(list(train(config, data, cache=cache)))[0]
    whole = config.model_copy(update={"precision": "float32"})
    second = frames_of(list(train(whole, data, cache=cache)))[0]
    assert first.embeddings.tolist() != second.embeddings.tolist()
    assert abs(first.embeddings - second.embeddings).max() < 0.1
