"""The default momentum of a queue's encoder copy, from the number of steps."""

from __future__ import annotations

import math

from core.config import PhaseConfig, phase_steps
from core.messages import Message
from core.parameters import number, whole
from core.quantities import percent

# MoCo's momentum, for runs of hundreds of thousands of steps (He et al. 2020, arXiv:1911.05722).
LARGEST = 0.999
# A copy averages over about 1/(1 − m) steps, by default a tenth of the run. Its share of the initial encoder at the end
# is then (1 − 10/steps)^steps < e⁻¹⁰.
MEMORIES_IN_A_RUN = 10
DECIMALS = 3
# Above this share of the initial encoder, a queue lags so far behind that most of its gradient is gone.
LEFT_AT_MOST = 0.1


def momentum_of(steps: int) -> float:
    """Return 1 − 10/steps, rounded down to DECIMALS decimals and clipped to [0, LARGEST]."""
    scale = 10**DECIMALS
    return min(LARGEST, max(0.0, math.floor((1 - MEMORIES_IN_A_RUN / steps) * scale) / scale))


def slow_queues(phase: PhaseConfig) -> tuple[Message, ...]:
    """Return a sentence for every queue of a prepared phase whose encoder copy hardly leaves its initial weights."""
    steps = phase_steps(phase)
    sentences = []
    for term in phase.objective.terms:
        if not whole(term.parameters, "queue") or term.weight == 0:
            continue
        momentum = number(term.parameters, "momentum")
        if momentum**steps > LEFT_AT_MOST:
            left = percent(momentum**steps)
            sentences.append(
                Message(
                    "The queue of {loss} lags behind: with momentum = {momentum:g}, {left} of its copy of the encoder "
                    "is still untrained after {steps:,} steps, and its gradient is small. Leave momentum to the "
                    "steps, which makes it {other:g}.",
                    loss=term.entry.symbol,
                    momentum=momentum,
                    left=left,
                    steps=steps,
                    other=momentum_of(steps),
                )
            )
    return tuple(sentences)
