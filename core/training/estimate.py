"""What a run will cost, before it starts: time and memory, from arithmetic and from what was measured here.

Imports no torch, so that the server can show it while one drags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np
import psutil

from core.config import RunConfig, TrainableConfig
from core.encoders.source import EncoderShape
from core.events import Step
from core.tasks import TaskData
from core.training.prepare import BASELINE_ROWS

# English word pieces; every character of scripts beyond Latin counts as a token of its own.
CHARACTERS_PER_TOKEN = 4.3
SPECIAL_TOKENS = 2
# Assumed until a run was measured: what a recent core and a recent GPU reach in a training step.
CPU_CORE_FLOPS = 4e10
GPU_FLOPS = 4e13
RUNTIME_BYTES = 700 * 2**20
# Weight, gradient and the two moments of AdamW, in float32.
LEARNING_BYTES, FROZEN_BYTES = 16, 4
# Activations that a block keeps for the backward pass, per token and hidden unit (Korthikanti et al. 2022,
# arXiv:2205.05198: 34 in 16 bit, so 68 in float32).
ACTIVATION_BYTES = 68


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds and bytes of a whole run; `measured` says whether the speed comes from a run on this machine."""

    steps_s: float
    frames_s: float
    test_s: float
    memory_bytes: float
    measured: bool

    @property
    def total_s(self) -> float:
        return self.steps_s + self.frames_s + self.test_s


def estimate(config: RunConfig, data: TaskData, shape: EncoderShape, flops: float, *, measured: bool) -> Estimate:
    """Time and memory of a prepared run.

    Args:
        flops: floating-point operations per second that this machine reaches, from `step_flops` or `assumed_flops`.
    """
    tokens = mean_tokens(data.train.texts, config.encoder.max_length)
    step = step_operations(shape, config.phase.trainable, tokens * config.phase.batch_size)
    forward = 2 * shape.blocks * shape.block_parameters
    evaluation_tokens = mean_tokens(data.validation.texts, config.encoder.max_length) * len(data.validation)
    frames = len(config.probe.frame_steps or ())
    untrained = min(BASELINE_ROWS, len(data.train)) * tokens
    test_tokens = mean_tokens(data.test.texts, config.encoder.max_length) * len(data.test)
    return Estimate(
        steps_s=config.steps * step / flops,
        frames_s=(frames * evaluation_tokens + untrained) * forward / flops,
        test_s=test_tokens * forward / flops,
        memory_bytes=_memory(shape, config.phase.trainable, tokens * config.phase.batch_size),
        measured=measured,
    )


def mean_tokens(texts: Sequence[str], max_length: int, sample: int = 200) -> float:
    """Roughly how many tokens a text has, from its characters."""
    chosen = [texts[i] for i in np.linspace(0, len(texts) - 1, min(sample, len(texts))).astype(int)]
    wide = [sum(ord(c) > 0x2E7F for c in text) for text in chosen]
    counts = [w + (len(t) - w) / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS for t, w in zip(chosen, wide, strict=True)]
    return mean(min(max_length, count) for count in counts)


def step_operations(shape: EncoderShape, trainable: TrainableConfig, tokens: float) -> float:
    """Floating-point operations of one step: two per weight and token forward, four backward where it learns."""
    learning = {"all": shape.blocks, "last_blocks": trainable.blocks, "classifier": 0}[trainable.part]
    return tokens * shape.block_parameters * (2 * shape.blocks + 4 * learning)


def measured_flops(steps: Sequence[Step], shape: EncoderShape, trainable: TrainableConfig) -> float | None:
    """Operations per second that a run reached, None when it has too few steps to tell."""
    rates = [
        step_operations(shape, trainable, step.values["tokens"]) / step.values["step_s"]
        for step in steps[2:]
        if step.values.get("step_s", 0) > 0
    ]
    return median(rates) if len(rates) >= 3 else None


def assumed_flops(gpu: bool) -> float:
    """A first guess at the operations per second of a training step here, until a run was measured."""
    return GPU_FLOPS if gpu else CPU_CORE_FLOPS * (psutil.cpu_count(logical=False) or 1)


def _memory(shape: EncoderShape, trainable: TrainableConfig, tokens: float) -> float:
    learning = {
        "all": shape.parameters,
        "last_blocks": trainable.blocks * shape.block_parameters,
        "classifier": shape.hidden_size**2,
    }[trainable.part]
    depth = {"all": shape.blocks, "last_blocks": trainable.blocks, "classifier": 0}[trainable.part]
    activations = tokens * shape.hidden_size * depth * ACTIVATION_BYTES
    return RUNTIME_BYTES + learning * LEARNING_BYTES + (shape.parameters - learning) * FROZEN_BYTES + activations
