"""Terms with little or no effect on the weights: frozen blocks, lagging queues, batches without positives.

Every step records the share of a term's anchors that have a positive and another candidate. The run's notice
and the live page read the same number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.advice.defaults import momentum_of
from core.config import PhaseConfig, phase_steps
from core.config.objective import ObjectiveConfig
from core.config.plan import plan_phase
from core.events import OfTerm
from core.messages import Message
from core.parameters import integer_setting, number
from core.quantities import percent
from core.tasks.batches import CLASSES_AT_ONCE

# Above this share of the initial encoder, a queue lags so far behind that most of its gradient is gone.
LEFT_AT_MOST = 0.1
STEPS_IN_A_ROW = 5


def inert_terms(phase: PhaseConfig, blocks: int) -> tuple[str, ...]:
    """Return the labels of weighted terms that cannot move any weight because everything they contrast is frozen."""
    # The embeddings, layer 0, learn only if everything does.
    frozen = -1 if phase.trainable.part == "all" else phase.trainable.frozen(blocks)
    counted = [term for term in plan_phase(phase.objective, blocks).terms if term.groups and term.term.weight > 0]
    return tuple(term.term.entry.label for term in counted if term.highest_block(blocks) <= frozen)


def slow_queues(phase: PhaseConfig) -> tuple[Message, ...]:
    """Return a sentence for every queue of a prepared phase whose encoder copy hardly leaves its initial weights."""
    steps = phase_steps(phase)
    sentences = []
    for term in phase.objective.terms:
        if not integer_setting(term.parameters, "queue") or term.weight == 0:
            continue
        momentum = number(term.parameters, "momentum")
        if momentum**steps > LEFT_AT_MOST:
            sentences.append(
                Message(
                    "The queue of {loss} lags behind: with momentum = {momentum:g}, {left} of the momentum encoder "
                    "is still untrained after {steps:,} steps, so its gradient is small. Set momentum to "
                    "automatic, which gives {other:g}.",
                    loss=term.entry.symbol,
                    momentum=momentum,
                    left=percent(momentum**steps),
                    steps=steps,
                    other=momentum_of(steps),
                )
            )
    return tuple(sentences)


def starving_sentences(
    recent: Sequence[Mapping[str, float]], objective: ObjectiveConfig, batch_size: int, sampler: str
) -> tuple[Message, ...]:
    """Return a sentence and a remedy for each weighted term without an active anchor in the last STEPS_IN_A_ROW steps.

    Args:
        recent: values of steps, the newest last.
        objective, batch_size, sampler: those of these steps.
    """
    last = recent[-STEPS_IN_A_ROW:]
    if len(last) < STEPS_IN_A_ROW:
        return ()
    remedy = Message("Start a run with class-balanced batches, or a batch larger than {size}.", size=batch_size)
    if sampler in CLASSES_AT_ONCE:
        remedy = Message("Start a run with more rows of each class, or a batch larger than {size}.", size=batch_size)
    starving = [
        Message(
            "{loss} is 0 and has no gradient: in the last {batches} batches no text had both a positive and other "
            "texts to separate it from.",
            loss=term.entry.symbol,
            batches=STEPS_IN_A_ROW,
        )
        for key, term in zip(objective.keys, objective.terms, strict=True)
        if term.weight > 0 and all(values.get(OfTerm.ACTIVE_ANCHORS.of(key)) == 0 for values in last)
    ]
    return tuple(Message("{first} {next}", first=found, next=remedy) for found in starving)
