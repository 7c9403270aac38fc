"""Contrastive terms that are 0 because their batches hold no positives, detected during a run.

Every step records the share of a term's anchors that have a positive and another candidate. The run's notice
and the live page read the same number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.config.objective import ObjectiveConfig
from core.events import OfTerm
from core.messages import Message

STEPS_IN_A_ROW = 5


def starving_terms(recent: Sequence[Mapping[str, float]], objective: ObjectiveConfig) -> tuple[str, ...]:
    """Return the keys of terms without an active anchor in each of the last STEPS_IN_A_ROW steps; weight 0 aside.

    Args:
        recent: values of steps, the newest last.
        objective: of these steps.
    """
    last = recent[-STEPS_IN_A_ROW:]
    if len(last) < STEPS_IN_A_ROW:
        return ()
    weighted = (key for key, term in zip(objective.keys, objective.terms, strict=True) if term.weight > 0)
    return tuple(key for key in weighted if all(values.get(OfTerm.ACTIVE_ANCHORS.of(key)) == 0 for values in last))


def starving_sentences(
    recent: Sequence[Mapping[str, float]], objective: ObjectiveConfig, batch_size: int, sampler: str
) -> tuple[Message, ...]:
    """Return a sentence and a remedy for each of `starving_terms`."""
    symbols = {key: term.entry.symbol for key, term in zip(objective.keys, objective.terms, strict=True)}
    remedy = Message("Start a run with class-balanced batches, or a batch larger than {size}.", size=batch_size)
    if sampler == "class_balanced":
        remedy = Message("Start a run with more rows of each class, or a batch larger than {size}.", size=batch_size)
    return tuple(
        Message("{first} {next}", first=_starves(symbols[key]), next=remedy)
        for key in starving_terms(recent, objective)
    )


def _starves(loss: str) -> Message:
    return Message(
        "{loss} is 0 and moves nothing: in the last {batches} batches no text had a positive to separate from other "
        "texts.",
        loss=loss,
        batches=STEPS_IN_A_ROW,
    )
