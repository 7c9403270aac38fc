"""The estimated cost of a run before it starts: time and memory, from arithmetic and measurements on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np
import psutil

from core.advice.score_source import PROBE_ROWS, classifier_learns_from
from core.config import PhaseConfig, RunConfig, TrainableConfig
from core.config.plan import KEPT_BYTES, Plan, plan_phase
from core.events import Step
from core.models.source import EncoderShape
from core.tasks import TaskData

# For English word pieces. Every character from U+2E80 on (CJK) counts as one token.
CHARACTERS_PER_TOKEN = 4.3
SPECIAL_TOKENS = 2
# Number of texts whose characters are counted.
SAMPLED_TEXTS = 200
# Operations per second of a recent core and a recent GPU in a training step, assumed until a run is measured.
CPU_CORE_FLOPS = 4e10
GPU_FLOPS = 4e13
# Minimum time of a step: batch, losses and optimiser, or the launch of a GPU's kernels.
LEAST_STEP_S = 0.005
RUNTIME_BYTES = 700 * 2**20
# Bytes per weight in float32: a weight that learns, with its gradient; the two moments of AdamW (Adafactor's are
# negligible, SGD has one); a frozen weight.
LEARNING_BYTES, MOMENT_BYTES, FROZEN_BYTES = 8, 8, 4
# Bytes of activations that a block keeps for the backward pass, per token and hidden unit (Korthikanti et al. 2022,
# arXiv:2205.05198: 34 in 16 bit, so 68 in float32).
ACTIVATION_BYTES = 68
HALF_BYTES = 2
# Bytes on disk per point and hidden unit of a frame: its vector in float32, and the attention of [CLS].
FRAME_BYTES = 12


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds and bytes of a whole run; `measured` is True if the speed comes from a run on this machine.

    `disk_bytes` is the size of a finished run on disk.
    """

    steps_s: float
    frames_s: float
    probe_s: float
    test_s: float
    weights_s: float
    memory_bytes: float
    disk_bytes: float
    measured: bool

    @property
    def total_s(self) -> float:
        return self.steps_s + self.frames_s + self.probe_s + self.test_s + self.weights_s


def estimate(config: RunConfig, data: TaskData, shape: EncoderShape, flops: float, *, measured: bool) -> Estimate:
    """Estimate time and memory of a prepared run.

    Args:
        flops: floating-point operations per second that this machine reaches, from `measured_flops` or `assumed_flops`.
    """
    tokens = mean_tokens(data.train.display_texts, config.encoder.max_length)
    forward = 2 * shape.blocks * shape.block_parameters
    evaluation_tokens = mean_tokens(data.validation.display_texts, config.encoder.max_length) * len(data.validation)
    frames = len(config.probe.frame_steps or ())
    rows_read = min(len(data.train), sum((phase.steps or 0) * phase.batch_size for phase in config.phases))
    on_map = config.probe.train_size or 0
    probe_tokens = evaluation_tokens + tokens * rows_read
    # At the end, each weight file predicts the validation split once in half precision.
    weight_files = 1 + len(config.checkpoint.snapshot_steps or ())
    weights_tokens = 0 if config.on_shared_trunk else evaluation_tokens * weight_files
    evaluation_tokens += tokens * on_map
    # A frame before the classifier learns reads further rows, on which its linear probe is fitted.
    first = classifier_learns_from(config)
    probed = sum(first is None or max(1, step) < first for step in config.probe.frame_steps or ())
    fitted = tokens * min(PROBE_ROWS, len(data.train))
    further = probed * max(0.0, fitted - tokens * on_map)
    # On disk: weights in half precision, those of a cell of a surface in float32, and frames of vectors, logits and
    # attention.
    learning = max(_learning_parameters(phase.trainable, shape) for phase in config.phases)
    frame_bytes = frames * ((config.probe.size or 0) + on_map) * shape.hidden_size * FRAME_BYTES
    test_tokens = mean_tokens(data.test.display_texts, config.encoder.max_length) * len(data.test)
    test_tokens = 0 if config.on_shared_trunk else test_tokens
    return Estimate(
        steps_s=sum(
            max(_phase_operations(phase, data, shape, tokens) / flops, (phase.steps or 0) * LEAST_STEP_S)
            for phase in config.phases
        ),
        frames_s=(frames * evaluation_tokens + further) * forward / flops,
        probe_s=(probe_tokens + test_tokens) * forward / flops,
        test_s=(test_tokens + (fitted if first is None else 0)) * forward / flops,
        weights_s=weights_tokens * forward / flops,
        memory_bytes=max(phase_memory(phase, data, shape, config.encoder.max_length) for phase in config.phases),
        disk_bytes=weight_files * learning * (FROZEN_BYTES if config.on_shared_trunk else HALF_BYTES) + frame_bytes,
        measured=measured,
    )


def _phase_operations(phase: PhaseConfig, data: TaskData, shape: EncoderShape, tokens: float) -> float:
    """Count the operations of all steps of a phase; frozen blocks with cached outputs run in the first epoch only."""
    plan = plan_phase(phase.objective, shape.blocks)
    steps = phase.steps or 0
    texts = tokens * phase.batch_size
    step = step_operations(shape, phase.trainable, texts * plan.readings)
    block = 2 * texts * shape.block_parameters  # one block, forward, once
    learning = _learning_blocks(phase.trainable, shape)
    if phase.gradient_checkpointing:  # activations are computed again
        step += block * plan.readings * learning
    if phase.micro_batch and phase.micro_batch < phase.batch_size:  # the gradient cache reads every text twice
        step += block * plan.readings * shape.blocks
    frozen = shape.blocks - learning
    if not keeps_frozen(phase, plan, shape):
        return steps * step
    first = min(steps, max(1, len(data.train) // phase.batch_size))
    return steps * (step - block * plan.readings * frozen) + first * block * frozen


def keeps_frozen(phase: PhaseConfig, plan: Plan, shape: EncoderShape) -> bool:
    """Return whether a phase caches the outputs of its frozen blocks."""
    in_parts = phase.effective_micro_batch is not None
    return plan.keeps_frozen(phase.trainable.frozen(shape.blocks), shape.blocks, in_parts=in_parts)


def mean_tokens(texts: Sequence[str], max_length: int) -> float:
    """Estimate the mean number of tokens read per text, from its characters."""
    return mean(min(max_length, count) for count in estimated_tokens(texts, SAMPLED_TEXTS))


def estimated_tokens(texts: Sequence[str], sample: int) -> list[float]:
    """Estimate the tokens of each of up to `sample` texts, special ones included, from its characters."""
    chosen = [texts[i] for i in np.linspace(0, len(texts) - 1, min(sample, len(texts))).astype(int)]
    wide = [sum(ord(c) > 0x2E7F for c in text) for text in chosen]
    return [w + (len(t) - w) / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS for t, w in zip(chosen, wide, strict=True)]


def step_operations(shape: EncoderShape, trainable: TrainableConfig, tokens: float) -> float:
    """Count the floating-point operations of one step.

    Per weight and token, it counts two operations forward, two backward in every block that gradients pass through, and
    two for a weight that learns.
    """
    learning = _learning_blocks(trainable, shape)
    backward = 2 if trainable.part == "lora" else 4
    return tokens * shape.block_parameters * (2 * shape.blocks + backward * learning)


def _learning_blocks(trainable: TrainableConfig, shape: EncoderShape) -> int:
    """Return the number of blocks that gradients pass through."""
    return shape.blocks - trainable.frozen(shape.blocks)


def measured_flops(steps: Sequence[Step], shape: EncoderShape, trainable: TrainableConfig) -> float | None:
    """Return the operations per second that a run reached; None if it has too few steps."""
    rates = [
        step_operations(shape, trainable, step.values["tokens"]) / step.values["step_s"]
        for step in steps[2:]
        if step.values.get("step_s", 0) > 0
    ]
    return median(rates) if len(rates) >= 3 else None


def assumed_flops(gpu: bool) -> float:
    """Return the operations per second assumed for a training step on this machine until a run is measured."""
    return GPU_FLOPS if gpu else CPU_CORE_FLOPS * (psutil.cpu_count(logical=False) or 1)


def _learning_parameters(trainable: TrainableConfig, shape: EncoderShape) -> int:
    return {
        "all": shape.parameters,
        "lora": 4 * trainable.lora_rank * shape.hidden_size * shape.blocks,
        "last_blocks": trainable.blocks * shape.block_parameters,
        "classifier": shape.hidden_size**2,
    }[trainable.part]


def phase_memory(phase: PhaseConfig, data: TaskData, shape: EncoderShape, max_length: int) -> float:
    """Estimate the bytes that a phase needs."""
    tokens = mean_tokens(data.train.display_texts, max_length)
    trainable, plan = phase.trainable, plan_phase(phase.objective, shape.blocks)
    learning = _learning_parameters(trainable, shape)
    texts = min(phase.micro_batch or phase.batch_size, phase.batch_size) * plan.readings
    depth = _learning_blocks(trainable, shape)
    width = tokens * texts * shape.hidden_size
    # With checkpointing, every block keeps its input, and one block at a time keeps all its activations.
    activations = (
        width * (4 * depth + ACTIVATION_BYTES) if phase.gradient_checkpointing else width * depth * ACTIVATION_BYTES
    )
    kept = len(data.train) * tokens * shape.hidden_size * 4 if keeps_frozen(phase, plan, shape) and depth else 0.0
    copies = sum(bool(term.term.parameters.get("queue")) for term in plan.terms) * shape.parameters * FROZEN_BYTES
    moments = {"adafactor": 0, "sgd": MOMENT_BYTES // 2}.get(phase.optimiser.name, MOMENT_BYTES)
    weights = learning * (LEARNING_BYTES + moments) + (shape.parameters - learning) * FROZEN_BYTES
    return RUNTIME_BYTES + weights + activations + min(kept, KEPT_BYTES) + copies
