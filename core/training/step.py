"""One training step: forward pass, losses, backward pass, gradient clipping and optimiser step."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.events import GRADIENT_NORM, LOSS, SHARED_COSINE, OfTerm
from core.losses.evaluate import reference_lines
from core.training.data_parallel import ShardedBatch
from core.training.gradients import EVERY_STEPS, shared_gradients
from core.training.optimisers import set_rates, take_clipped_step
from core.training.outputs import Reader
from core.training.passes import Batch
from core.training.phase import Phase


class StepGradients(NamedTuple):
    """Gradients of a step, before the optimiser applies them."""

    batch: Batch
    norm: Tensor
    values: dict[str, float]
    started: float


def compute_step(phase: Phase, step: int) -> StepGradients:
    """Compute the gradients of one step.

    The optimiser has not run yet, so a non-finite loss leaves the weights unchanged.
    """
    started = time.perf_counter()
    phase.encoder.train_only(phase.learning)
    set_rates(phase.optimiser, phase.rate(step))
    with phase.drawing:
        batch = phase.batch(step)  # tokens of each pass [B], labels [B]
        # All passes share one call of the encoder, with their texts packed. With a gradient cache the vectors are
        # leaves; the encoder reads the texts again, one micro-batch at a time, once the leaves have gradients.
        outputs, cache = phase.passes.encode(step, batch)
        reader = Reader(outputs, phase.encoder, phase.plan, queue=phase.queued, cut=batch.mixed)
        value = phase.objective(reader, batch.labels)  # Σ weight · term
        measured = _lines(phase, reader, batch.labels)
    shared = None
    if (step - 1) % EVERY_STEPS == 0 and phase.compares_gradients:
        # Compare the terms' gradients on weights that all terms reach.
        shared = shared_gradients(
            value, phase.objective.terms, phase.reach, phase.encoder, outputs.vectors, phase.frozen
        )
    if shared is not None and cache is None:
        shared.add(outputs.vectors)
    value.total.backward()
    if isinstance(cache, ShardedBatch):
        cache.backward(shared, phase.parameters)
    elif cache is not None:
        with phase.drawing:  # it repeats the draws of dropout
            cache.backward(shared)
    if shared is not None:
        measured |= shared.measures()
    phase.row_gradients.gather()
    norm = nn.utils.get_total_norm([p.grad for p in phase.parameters if p.grad is not None])
    tensors = {LOSS: value.total, GRADIENT_NORM: norm}
    tensors |= {OfTerm.LOSS.of(name): part for name, part in value.parts.items()} | measured
    # Transfer all numbers from the device at once.
    stacked = torch.stack([tensor.detach().to(phase.machine.device, torch.float32) for tensor in tensors.values()])
    values = dict(zip(tensors, stacked.tolist(), strict=True)) | phase.knobs(step)
    if math.isnan(values.get(SHARED_COSINE, 0.0)):  # a term with a zero gradient has no direction
        del values[SHARED_COSINE]
    values["tokens"] = float(sum(len(tokens.ids) for texts in batch.tokens for tokens in texts))
    values["texts"] = float(len(batch.rows))
    return StepGradients(batch, norm, values, started)


def commit_step(phase: Phase, computed: StepGradients) -> float:
    """Apply the gradients of a computed step. Return the duration of the whole step in seconds."""
    take_clipped_step(phase.optimiser, phase.parameters, computed.norm, phase.config.optimiser.max_gradient_norm)
    phase.optimiser.zero_grad(set_to_none=True)
    for queue in phase.queues.values():
        queue.step(phase.passes.inputs.plain(computed.batch.rows), computed.batch.labels, phase.machine.autocast)
    return time.perf_counter() - computed.started


def _lines(phase: Phase, reader: Reader, labels: Tensor) -> dict[str, Tensor]:
    """Compute the reference lines of every term on this batch."""
    lines: dict[str, Tensor] = {}
    for term in phase.objective.terms:
        with torch.no_grad():
            found = reference_lines(term.loss, reader(term.key), labels, term.parameters)
        if found is not None:
            lines[OfTerm.COLLAPSE_LINE.of(term.key)] = found.collapse
            if found.bound is not None:
                lines[OfTerm.LOWER_BOUND.of(term.key)] = found.bound
            if found.active is not None:
                lines[OfTerm.ACTIVE_ANCHORS.of(term.key)] = found.active
    return lines
